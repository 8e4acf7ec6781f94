"""Metrics from elsewhere and to elsewhere: TensorBoard event files and CSV in, CSV and Parquet out."""
