"""What tasks were given in confidence: the values of their env. Kept beside the state, which is streamed and shown;
durable with the record of the task itself; handed only to the agents that start its ranks.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from strata.cluster.events import Event, TaskSubmitted
from strata.coordinator.state import commands as c

__all__ = ["Vault"]


class Vault:
    """Env by task, for as long as the task is known: one that was given up may be resumed."""

    def __init__(self) -> None:
        self._env: dict[str, dict[str, str]] = {}

    def restore(self, private: Mapping[str, bytes]) -> None:
        """Loads what the journal holds."""
        self._env = {task_id: json.loads(body) for task_id, body in private.items()}

    def take(self, command: c.Command[Any], events: Sequence[Event]) -> dict[str, bytes]:
        """Keeps what a command that was carried out brought; returns what must become durable with its events."""
        made = any(isinstance(event, TaskSubmitted) for event in events)  # a repeated submission makes nothing
        if not (made and isinstance(command, c.SubmitTask) and command.spec.env):
            return {}
        self._env[command.task_id] = dict(command.spec.env)
        return {command.task_id: json.dumps(self._env[command.task_id]).encode()}

    def env_of(self, task_id: str) -> Mapping[str, str]:
        return self._env.get(task_id, {})
