"""Histogram: how often values fall into which bins. Counted at once: until it is sent it takes a few kilobytes."""

from typing import Any

import numpy as np

from strata.errors import InvalidArgument
from strata.worker.media.base import Entry, Media, media_json
from strata.worker.media.image import array_of

__all__ = ["Histogram"]

_MAX_BINS = 512
_MOST = 1e300  # the width of a wider range would be no number


class Histogram(Media):
    """Counts per bin, from values or from what numpy.histogram gives. Values that are NaN or infinite are counted
    apart."""

    kind = "histogram"
    num_bytes = 16 * _MAX_BINS

    def __init__(self, sequence: Any = None, np_histogram: Any = None, num_bins: int = 64) -> None:
        self.num_bad = 0
        if np_histogram is None:
            if not 1 <= num_bins <= _MAX_BINS:
                raise InvalidArgument(f"num_bins is {num_bins}, it must be between 1 and {_MAX_BINS}")
            values = _floats(sequence)
            finite = values[np.isfinite(values)]
            self.num_bad = int(values.size - finite.size)
            np_histogram = _counted(finite, num_bins)
        self.histogram, self.bins = ([float(one) for one in part] for part in np_histogram)
        if not 1 <= len(self.histogram) <= _MAX_BINS or len(self.bins) != len(self.histogram) + 1:
            raise InvalidArgument(
                f"{len(self.histogram)} counts and {len(self.bins)} edges are no histogram",
                hint=f"numpy.histogram's: 1 to {_MAX_BINS} counts, and one edge more.",
            )

    def entry(self) -> Entry:
        counts = [int(count) if count.is_integer() else count for count in self.histogram]
        about = {"counts": counts, "bins": self.bins, **({"bad": self.num_bad} if self.num_bad else {})}
        return Entry(kind=self.kind, text=media_json(about))


def _floats(sequence: Any) -> Any:
    try:
        return array_of([] if sequence is None else sequence).astype(np.float64).ravel()
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"a histogram is of numbers: {error}") from None


def _counted(values: Any, num_bins: int) -> Any:
    values = np.clip(values, -_MOST, _MOST)
    try:
        return np.histogram(values, bins=num_bins)
    except ValueError:  # the values lie closer together than floats can be told apart
        middle = float(values.mean())
        width = max(1.0, abs(middle) * 1e-6)
        return np.histogram(values, bins=num_bins, range=(middle - width, middle + width))
