"""Where this process stands: which task, rank and cluster. Read once from the environment; Strata's own variables come
first, then torchrun's, Slurm's and Kubernetes', else it is alone.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strata.client.leaders import split_addresses
from strata.config import Settings, load_settings
from strata.errors import InvalidConfig
from strata.trust.access import find_access
from strata.trust.proofs import SECRET_VARIABLE
from strata.types.forks import TaskFork
from strata.types.plain import from_plain

__all__ = ["Place", "checkpoint_path", "find_place", "gang_address", "gang_secret"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """`task_id` is empty outside of a task; `group` then names ranks that another launcher started together.
    `world_size` is how many ranks there are now, `worker_count` how many an elastic task has at most (0: it is not
    known, and the world does not change)."""

    settings: Settings
    task_id: str = ""
    run_id: str = ""
    group: str = ""
    worker_id: str = ""
    incarnation: str = field(default_factory=lambda: secrets.token_hex(8))
    agent_id: str = ""
    rank: int = 0
    world_size: int = 1
    worker_count: int = 0
    local_rank: int = 0
    attempt: int = 0
    world_number: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    dataset_id: str = ""
    dataset: Mapping[str, Any] | None = None
    telemetry: str = ""
    apart: str = ""  # the hosts of its task, where they do not share the place of checkpoints
    agent_socket: str = ""
    num_gpus: int = 0  # cards that it alone holds
    fork: TaskFork | None = None

    @property
    def roads(self) -> tuple[str, ...]:
        """Where this rank's tie may lead, the preferred one first: by its agent, and straight to a coordinator."""
        agent = (f"unix:{self.agent_socket}",) if self.agent_socket else ()
        return (*agent, *self.coordinators)

    @property
    def coordinators(self) -> tuple[str, ...]:
        """One of them leads."""
        return split_addresses(self.settings.coordinator_addr)

    @property
    def data_dir(self) -> Path:
        return self.settings.data_dir.resolve()


def find_place(environ: Mapping[str, str] | None = None) -> Place:
    """Raises InvalidConfig that names a variable which makes no sense."""
    env = os.environ if environ is None else environ
    settings = load_settings()
    if env.get("STRATA_TASK_ID"):
        return _in_task(env, settings)
    for run_id, names in (
        ("TORCHELASTIC_RUN_ID", ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RESTART_COUNT")),
        ("SLURM_JOB_ID", ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_RESTART_COUNT")),
        ("JOB_COMPLETION_INDEX", ("JOB_COMPLETION_INDEX", "WORLD_SIZE", "LOCAL_RANK", "")),
    ):
        if env.get(run_id) and env.get(names[0]):
            return _in_group(env, settings, f"{run_id.partition('_')[0].lower()}-{env[run_id]}", names)
    return Place(settings=settings, telemetry=env.get("STRATA_TELEMETRY_ADDR", ""))


def _in_task(env: Mapping[str, str], settings: Settings) -> Place:
    return Place(
        settings=settings,
        task_id=env["STRATA_TASK_ID"],
        run_id=env.get("STRATA_RUN_ID") or env["STRATA_TASK_ID"],
        worker_id=env["STRATA_WORKER_ID"],
        incarnation=env["STRATA_INCARNATION"],
        agent_id=env.get("STRATA_AGENT_ID", ""),
        agent_socket=env.get("STRATA_AGENT_SOCKET", ""),
        rank=_number(env, "STRATA_RANK"),
        world_size=_number(env, "STRATA_WORLD_SIZE", 1),
        worker_count=_number(env, "STRATA_WORKER_COUNT"),
        local_rank=_number(env, "STRATA_LOCAL_RANK"),
        attempt=_number(env, "STRATA_ATTEMPT"),
        world_number=_number(env, "STRATA_WORLD_NUMBER"),
        config=json.loads(env.get("STRATA_CONFIG_JSON") or "{}"),
        dataset_id=env.get("STRATA_DATASET_ID", ""),
        dataset=json.loads(env["STRATA_DATASET_JSON"]) if env.get("STRATA_DATASET_JSON") else None,
        telemetry=env.get("STRATA_TELEMETRY_ADDR", ""),
        apart=env.get("STRATA_CHECKPOINTS_APART", ""),
        num_gpus=len(env["STRATA_GPUS"].split(",")) if env.get("STRATA_GPUS") else 0,
        fork=from_plain(TaskFork, json.loads(env["STRATA_FORK_JSON"])) if env.get("STRATA_FORK_JSON") else None,
    )


def _in_group(env: Mapping[str, str], settings: Settings, group: str, names: tuple[str, str, str, str]) -> Place:
    rank = _number(env, names[0])
    return Place(
        settings=settings,
        group=group[:100],
        worker_id=f"{group[:100]}-{rank}",
        rank=rank,
        world_size=_number(env, names[1], 1),
        local_rank=_number(env, names[2]),
        attempt=_number(env, names[3]) if names[3] else 0,
        telemetry=env.get("STRATA_TELEMETRY_ADDR", ""),
    )


def _number(env: Mapping[str, str], name: str, default: int = 0) -> int:
    text = env.get(name)
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise InvalidConfig(f"{name} = {text!r} is not a whole number") from None


def checkpoint_path(place: Place) -> str:
    """The default home of a task's checkpoints: a bucket when one is configured, else the data folder. Raises
    InvalidConfig where the hosts of the task do not share it: a part of each checkpoint would be on each of them."""
    from strata.storage.home import checkpoint_home, told_apart  # only for those who save

    if place.apart:
        raise InvalidConfig(told_apart(place.apart))
    return f"{checkpoint_home(place.settings)}/{place.task_id or place.run_id}"


def gang_address(world_size: int) -> tuple[str, int]:
    """Where rank 0 hosts `run.gang`: MASTER_ADDR, on a port of its own, for MASTER_PORT belongs to the training
    framework. Another launcher names no such port: there it is the one after MASTER_PORT. Raises InvalidConfig where
    nobody says it: Slurm does not."""
    port = _number(os.environ, "STRATA_GANG_PORT") or _number(os.environ, "MASTER_PORT") + 1
    if port == 1 and world_size > 1:
        raise InvalidConfig(
            "MASTER_PORT is not set, so the ranks do not know where to meet: set MASTER_ADDR, the host of rank 0, and "
            "MASTER_PORT, a free port there, for all of them (in a job script: export MASTER_ADDR=… MASTER_PORT=29500)"
        )
    return os.environ.get("MASTER_ADDR", "127.0.0.1"), port


def gang_secret(place: Place, world: int = 0) -> bytes:
    """Ranks of one attempt and world share it; a rank of another, or another user's process, is turned away."""
    known = os.environ.get(SECRET_VARIABLE) or find_access(place.settings).token
    words = f"{known}/{place.task_id or place.group}/{place.attempt}" + (f"/{world}" if world else "")
    return hashlib.sha256(words.encode()).digest()
