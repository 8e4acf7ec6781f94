"""What a script says of its run: project, name, config and labels, checked; and the sentence for any other argument."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any

from strata.errors import InvalidArgument
from strata.types.labels import check_label, check_notes, check_tags

__all__ = ["Description", "check_arguments", "config_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Empty: nothing is said. Tags are each there once."""

    project: str = ""
    name: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    group: str = ""
    job_type: str = ""
    notes: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tags", tuple(check_tags(self.tags)))
        for name in ("group", "job_type"):
            object.__setattr__(self, name, check_label(name, str(getattr(self, name))))
        object.__setattr__(self, "notes", check_notes(str(self.notes)))


def config_of(given: Any) -> dict[str, Any]:
    """A config as people have it: a mapping, a dataclass, the namespace that argparse gives."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    if is_dataclass(given) and not isinstance(given, type):
        return asdict(given)
    if hasattr(given, "__dict__") and not isinstance(given, type):
        return dict(vars(given))
    raise InvalidArgument(
        f"config is a {type(given).__name__}", hint="Give a dict, a dataclass or argparse's namespace."
    )


def check_arguments(function: str, unknown: Mapping[str, object], known: Iterable[str]) -> None:
    """Raises InvalidArgument that names the first unknown argument, what was meant, and all that there are."""
    for name in unknown:
        near = difflib.get_close_matches(name, list(known), n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise InvalidArgument(f"{function} has no argument {name!r}{meant}", hint=f"It takes {', '.join(known)}.")
