"""torch.distributed in world after world: a fresh group on a fresh store each time, ended from outside when a rank
died; and models and optimizers, kept without a copy of their parameters.
"""

import contextlib
import copy
import datetime
import os
import socket
import stat
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_pre_hook

from strata.worker.elastic.keepers import CopyKeeper, Keeper
from strata.worker.elastic.worlds import Meeting

__all__ = ["TorchRandom", "TorchWorld"]

_CLOCKED_STEPS = 10  # every tenth step is timed
_LOOK_S = 1.0
_STORE_S = datetime.timedelta(seconds=60)  # all ranks have met before they look for the store


class TorchWorld:
    """Implements the Framework of strata.worker.elastic."""

    def __init__(self, backend: str) -> None:
        self._backend = backend or ("nccl" if torch.cuda.is_available() else "gloo")
        self._store: Any = None
        self._ended: Any = None
        self._before: dict[int, int] = {}
        self._own: dict[int, int] | None = {}
        self._wrapped: Callable[[], DistributedDataParallel | None] = lambda: None
        self._looked_at = self._waited_s = 0.0
        self.stepped = False
        register_optimizer_step_pre_hook(self._on_step)

    def _on_step(self, *_: Any) -> None:
        self.stepped = True

    # --- the group

    def host(self, meeting: Meeting, rank: int) -> None:
        self._before, self._own = _sockets(), None
        if meeting.size == 1:
            self._store = dist.HashStore()
        elif rank == 0:
            self._store = self._open_store(meeting, host=True)

    def enter(self, meeting: Meeting, rank: int) -> None:
        store = self._store or self._open_store(meeting, host=False)
        try:
            dist.init_process_group(
                self._backend,
                store=dist.PrefixStore(f"world-{meeting.number}", store),
                rank=rank,
                world_size=meeting.size,
            )
        except Exception:
            _forget_groups()
            raise
        self._store = store
        self._own = _added(self._before)

    def _open_store(self, meeting: Meeting, *, host: bool) -> Any:
        address = (meeting.master_addr, meeting.master_port)
        return dist.TCPStore(*address, meeting.size, is_master=host, wait_for_workers=False, timeout=_STORE_S)

    def abort(self) -> None:
        """NCCL has a word for it. Gloo has none (its abort does nothing to a collective that waits): it hears that its
        peers are gone when its connections are shut down under it."""
        group = dist.group.WORLD
        if group is not None and self._backend != "gloo":
            with contextlib.suppress(RuntimeError):  # it has ended already
                group.abort()
        own = self._own
        for number, inode in (_added(self._before) if own is None else own).items():
            _shut_down(number, inode)

    def leave(self) -> None:
        """The group object is kept until the next one ends. Its own end waits for gloo's threads, which may wait for
        Python's lock: that is given up when the object itself goes last, and not when a DDP model that holds the group
        does (seen: the rank hangs)."""
        if dist.is_initialized():
            self._ended = dist.group.WORLD
            dist.destroy_process_group()
        self._store, self._own = None, {}

    def wrap(self, model: Any, **options: Any) -> Any:
        """restore() has made the models of all ranks alike: they are not sent around again."""
        device = next(model.parameters()).device
        given = {"device_ids": [device.index]} if device.type == "cuda" else {}
        wrapped = DistributedDataParallel(model, **{"init_sync": False, **given, **options})
        wrapped._set_ddp_runtime_logging_sample_rate(_CLOCKED_STEPS)
        self._wrapped = weakref.ref(wrapped)
        return wrapped

    def waited_s(self) -> float:
        """By DDP's own clocks: so much longer than this rank's backward pass took the sum over all ranks. Looked up
        once a second; in between it is taken to be the same."""
        model, now = self._wrapped(), time.monotonic()
        if model is not None and now - self._looked_at > _LOOK_S:
            clocks = model._get_ddp_logging_data()
            beside_ns = clocks.get("backward_comm_time", 0) - clocks.get("backward_compute_comm_overlap_time", 0)
            self._looked_at, self._waited_s = now, max(0.0, beside_ns / 1e9)
        return self._waited_s if model is not None else 0.0

    # --- the state

    def keeper_of(self, name: str, part: Any) -> Keeper:
        if isinstance(part, DistributedDataParallel):
            part = part.module  # the wrapper belongs to one world
        if isinstance(part, torch.nn.Module):
            return _ModuleKeeper(self, part)
        if isinstance(part, torch.optim.Optimizer):
            return _OptimizerKeeper(self, part)
        return CopyKeeper(name, part)


def _forget_groups() -> None:
    """After a group that did not come to be. torch has counted it, and names the next one by that count: ranks that
    count differently would wait for each other for ever, under different keys of one store. The end of a whole group
    sets the count back, so a group of this process alone is made and ended."""
    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    dist.destroy_process_group()


def _sockets() -> dict[int, int]:
    """The open sockets of this process: file descriptor → inode, which is never another's while it is open."""
    found = {}
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # it was the folder itself, or was closed meanwhile
            entry = os.fstat(int(path.name))
            if stat.S_ISSOCK(entry.st_mode):
                found[int(path.name)] = entry.st_ino
    return found


def _added(before: dict[int, int]) -> dict[int, int]:
    return {number: inode for number, inode in _sockets().items() if before.get(number) != inode}


def _shut_down(number: int, inode: int) -> None:
    """Ends a TCP connection that is still the one it was; listening sockets and those of other kinds stay."""
    with contextlib.suppress(OSError):
        if os.fstat(number).st_ino != inode:
            return
        with socket.socket(fileno=os.dup(number)) as line:
            inet = line.family in (socket.AF_INET, socket.AF_INET6)
            if inet and not line.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                line.shutdown(socket.SHUT_RDWR)


class _ModuleKeeper:
    """Parameters stay where they are: only an optimizer changes them. Buffers change in every forward: they are
    copied."""

    def __init__(self, world: TorchWorld, part: torch.nn.Module) -> None:
        self.part = part
        self._world = world
        self._buffers: dict[str, Any] = {}

    @property
    def clean(self) -> bool:
        return not self._world.stepped

    def commit(self) -> None:
        self._buffers = {name: buffer.detach().clone() for name, buffer in self.part.named_buffers()}
        self._world.stepped = False

    def rewind(self) -> None:
        with torch.no_grad():
            for name, buffer in self.part.named_buffers():
                buffer.copy_(self._buffers[name])
        self.part.zero_grad(set_to_none=True)

    def state(self) -> Any:
        whole = dict(self.part.state_dict())
        return {**whole, **{name: value for name, value in self._buffers.items() if name in whole}}

    def load(self, state: Any) -> None:
        self.part.load_state_dict(state)
        self.part.zero_grad(set_to_none=True)


class _OptimizerKeeper:
    """Its tensors change only in its own step; learning rates and the like are copied."""

    def __init__(self, world: TorchWorld, part: torch.optim.Optimizer) -> None:
        self.part = part
        self._world = world
        self._groups: list[dict[str, Any]] = []

    @property
    def clean(self) -> bool:
        return not self._world.stepped

    def commit(self) -> None:
        self._groups = [
            {name: copy.deepcopy(value) for name, value in group.items() if name != "params"}
            for group in self.part.param_groups
        ]
        self._world.stepped = False

    def rewind(self) -> None:
        for group, kept in zip(self.part.param_groups, self._groups, strict=True):
            group.update(copy.deepcopy(kept))

    def state(self) -> Any:
        whole = self.part.state_dict()
        groups = [{**now, **kept} for now, kept in zip(whole["param_groups"], self._groups, strict=True)]
        return {**whole, "param_groups": groups}

    def load(self, state: Any) -> None:
        self.part.load_state_dict(state)


class TorchRandom:
    """torch's generators: of the CPU, and of the GPUs where they are in use."""

    def get(self) -> Any:
        devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        return {"cpu": torch.get_rng_state(), "cuda": devices}

    def set(self, state: Any) -> None:
        torch.set_rng_state(state["cpu"])
        if state["cuda"]:
            torch.cuda.set_rng_state_all(state["cuda"])

    def seed(self, number: int) -> None:
        torch.manual_seed(number)
