"""What the facade has to say to people: once each, on stderr through the log, never in the way of a training."""

import logging

__all__ = ["note"]

_log = logging.getLogger("strata.wandb")
_said: set[str] = set()


def note(name: str, sentence: str) -> None:
    """Says once that something is taken otherwise than wandb would."""
    if name not in _said:
        _said.add(name)
        _log.warning("%s: %s", name, sentence)
