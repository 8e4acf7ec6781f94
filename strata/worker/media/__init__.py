"""What a run logs beside numbers: pictures, histograms, tables, documents and files."""

from strata.worker.media.base import Media
from strata.worker.media.document import Html, Text
from strata.worker.media.file import File
from strata.worker.media.histogram import Histogram
from strata.worker.media.image import Image
from strata.worker.media.table import Table

__all__ = ["File", "Histogram", "Html", "Image", "Media", "Table", "Text"]
