"""What a run logs beside numbers: pictures, histograms, tables, documents and files."""
