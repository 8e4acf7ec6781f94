"""What a training script hands to `run.log`, read as points: nested names joined, values as floats, texts and lists as
text, a step as a whole number. What cannot be read so is refused with a reason; nothing else is ever raised.
"""

import json
import math
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from strata.types.metrics import MAX_STEP
from strata.worker.media.unfit import MAX_TEXT, Unfit, shown

__all__ = ["MAX_TEXT", "Text", "Unfit", "flat", "number_of", "shown", "text_of", "value_json", "whole_step"]

_MAX_DEPTH = 8
_MAX_ITEMS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A value that is no number, as it is kept; `kind` says how it is to be read."""

    kind: str
    text: str


def whole_step(step: Any) -> int:
    """Takes whole numbers of any kind, also 5.0 and NumPy's or torch's."""
    try:
        number = operator.index(step)
    except Exception:
        try:
            value = number_of(step)
        except Unfit:
            value = math.nan
        if not value.is_integer():  # also inf and nan
            raise Unfit(f"step {shown(step)} is not a whole number") from None
        number = int(value)
    if not 0 <= number <= MAX_STEP:
        raise Unfit(f"step {shown(number)} is not between 0 and 2^53")
    return number


def number_of(value: Any) -> float:
    """NaN and infinities are data and stay. Text is refused even where it spells a number: a mistake, more likely."""
    if isinstance(value, str | bytes | bytearray | None):
        raise Unfit(f"{shown(value)} is not a number")
    try:
        if not isinstance(value, int | float):
            if not hasattr(value, "item") and hasattr(value, "numpy"):
                value = value.numpy()  # TensorFlow's
            if hasattr(value, "item"):
                value = value.item()  # arrays and tensors of one element; others say themselves that they have more
        return float(value)
    except OverflowError:
        raise Unfit(f"{shown(value)} is too large for a float") from None
    except Exception as error:
        raise Unfit(f"{shown(value)} is not one number ({type(error).__name__})") from None


def text_of(value: Any) -> Text | None:
    """A text, a list or an array of several numbers as it is kept; None for what is neither. Raises Unfit for one that
    is too large."""
    if isinstance(value, Text):
        return value
    if isinstance(value, str):
        return Text(kind="text", text=value)
    if not isinstance(value, list | tuple) and hasattr(value, "tolist"):
        if int(getattr(value, "size", 0) if not callable(getattr(value, "size", 0)) else value.numel()) > _MAX_ITEMS:
            raise Unfit(f"is an array of more than {_MAX_ITEMS} elements")
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return None
    if len(value) > _MAX_ITEMS:
        raise Unfit(f"is a list of {len(value)} elements, at most {_MAX_ITEMS} are kept")
    return Text(kind="json", text=value_json(value))


def value_json(value: Any) -> str:
    """A value as JSON: a number of any library as a number, what JSON cannot say as text. Raises Unfit."""
    try:
        return json.dumps(value, default=_plain)
    except Exception as error:  # it contains itself, or its __str__ fails
        raise Unfit(f"{shown(value)} cannot be kept ({type(error).__name__})") from None


def _plain(value: Any) -> Any:
    try:
        return number_of(value)
    except Unfit:
        return value.tolist() if hasattr(value, "tolist") else str(value)


def flat(values: Mapping[Any, Any], prefix: str = "", depth: int = 1) -> Iterator[tuple[Any, Any]]:
    """Name and value of each; `{"eval": {"loss": 1}}` is `eval/loss`."""
    for name, value in values.items():
        if isinstance(value, Mapping) and isinstance(name, str):
            if depth == _MAX_DEPTH:
                yield f"{prefix}{name}", _TooDeep()
            else:
                yield from flat(value, f"{prefix}{name}/", depth + 1)
        else:
            yield (f"{prefix}{name}" if prefix and isinstance(name, str) else name), value


class _TooDeep:
    """Stands for a value that no number can be made of."""

    def __repr__(self) -> str:
        return f"a dict nested more than {_MAX_DEPTH} deep"
