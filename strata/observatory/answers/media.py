"""Media of a run as REST shows them."""

from dataclasses import dataclass

__all__ = ["MediaEntries", "MediaEntry", "MediaKey", "MediaName", "MediaSteps", "RunMedia"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaKey:
    """One name under which a run logs media of one kind; `ranks` are those that do, 64 at most."""

    metric: str
    kind: str
    ranks: list[int]
    num_steps: int
    first_step: int
    last_step: int
    last_event_time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMedia:
    """What a run has logged beside numbers, by name. `more`: there are further names; search for them."""

    run_id: str
    keys: list[MediaKey]
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaName:
    """What is logged under one name, as one kind, by one rank."""

    run_id: str
    metric: str
    kind: str
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaSteps(MediaName):
    """The steps at which something was logged under a name, in order. `more`: those are not all."""

    steps: list[int]
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaEntry:
    """What was logged at one step; of a step that was done again, the newest. `text` is what its kind says: the words
    of a text, the JSON of a histogram, the JSON of `{"items": [{"file", ...}]}`, whose files are below
    /api/runs/{run_id}/files."""

    step: int
    event_time_ms: int
    attempt: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaEntries(MediaName):
    """Entries in the order of their steps, evenly chosen where there are more than were asked for. `num_steps` are all
    of them."""

    num_steps: int
    entries: list[MediaEntry]
