"""Agents as actors on an existing Ray cluster. Each actor runs one agent as a process of its own; Ray restarts the
actor when a node dies, Strata decides about ranks. A cluster with token auth is joined with RAY_AUTH_TOKEN.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from typing import Any

from strata.errors import MissingExtra, Unavailable
from strata.launchers.base import Exit, LaunchSpec

__all__ = ["RayLauncher"]

_NAMESPACE = "strata"
_POLL_S = 0.2
_CALL_S = 30.0


class _AgentActor:
    """Runs inside Ray's worker process: keeps one agent running until it is told to stop."""

    def __init__(self, argv: list[str], env: dict[str, str], log: str) -> None:
        with open(log, "ab") if log else contextlib.nullcontext(subprocess.DEVNULL) as out:  # noqa: PTH123  # Ray ships this class as it is
            self._process = subprocess.Popen(
                argv,
                env={**os.environ, **env},
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def poll(self) -> int | None:
        return self._process.poll()

    def signal(self, number: int) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)


class RayLauncher:
    """A handle is the tag and the number of actors, whose names are made from them."""

    def __init__(self, address: str = "auto") -> None:
        self._address = address

    def _ray(self) -> Any:
        try:
            import ray
        except ImportError:
            raise MissingExtra("ray", "ray") from None
        if not ray.is_initialized():
            try:
                ray.init(self._address, namespace=_NAMESPACE, log_to_driver=False, logging_level="ERROR")
            except (ConnectionError, RuntimeError) as error:
                raise Unavailable(f"no Ray cluster answers at {self._address}: {error}") from None
        return ray

    def prepare(self, spec: LaunchSpec) -> None:
        ray = self._ray()
        cpus = ray.cluster_resources().get("CPU", 0.0)
        if cpus < spec.copies:
            raise Unavailable(f"the Ray cluster has {cpus:g} CPUs, {spec.copies} agents need one each")

    def start(self, spec: LaunchSpec) -> str:
        ray = self._ray()
        actor = ray.remote(_AgentActor)
        waiting = []
        for number in range(spec.copies):
            env = {**spec.env, "STRATA_AGENT_NUMBER": str(number), "STRATA_INCARNATION": spec.tag}
            options = {
                "name": f"{spec.tag}-{number}",
                "namespace": _NAMESPACE,
                "lifetime": "detached",
                "num_cpus": 1,
                "max_restarts": -1,
                "scheduling_strategy": "SPREAD",
            }
            log = f"{spec.stdout}.{number}" if spec.stdout else ""
            waiting.append(actor.options(**options).remote(list(spec.argv), env, log).poll.remote())
        ray.get(waiting, timeout=_CALL_S)
        return json.dumps({"tag": spec.tag, "copies": spec.copies})

    def poll(self, handle: str) -> Exit | None:
        """It runs while any of its agents does."""
        ray = self._ray()
        codes: list[int | None] = []
        for actor in self._actors(handle):
            try:
                codes.append(ray.get(actor.poll.remote(), timeout=_CALL_S))
            except ray.exceptions.RayError:
                codes.append(None if self._restarting(actor) else -signal.SIGKILL)
        if None in codes:
            return None
        bad = [code for code in codes if code]
        return Exit(code=bad[0] if bad else 0 if codes else None, reason="" if codes else "Ray knows no such actors")

    def _restarting(self, actor: Any) -> bool:
        return bool(actor._actor_id)  # a named actor with restarts left comes back by itself

    def signal(self, handle: str, number: int) -> None:
        ray = self._ray()
        with contextlib.suppress(ray.exceptions.RayError):
            ray.get([actor.signal.remote(int(number)) for actor in self._actors(handle)], timeout=_CALL_S)

    def stop(self, handle: str, grace_s: float) -> Exit:
        ray = self._ray()
        self.signal(handle, signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while (ended := self.poll(handle)) is None:
            if time.monotonic() > deadline:
                self.signal(handle, signal.SIGKILL)
            time.sleep(_POLL_S)
        for actor in self._actors(handle):
            ray.kill(actor)
        return ended

    def adopt(self, tag: str) -> str | None:
        ray = self._ray()
        known = {entry["name"] for entry in ray.util.list_named_actors(all_namespaces=True)}
        copies = sum(name.startswith(f"{tag}-") for name in known)
        return json.dumps({"tag": tag, "copies": copies}) if copies else None

    def _actors(self, handle: str) -> list[Any]:
        ray = self._ray()
        known = json.loads(handle)
        found = []
        for number in range(known["copies"]):
            with contextlib.suppress(ValueError):  # Ray's word for a name that nobody has
                found.append(ray.get_actor(f"{known['tag']}-{number}", namespace=_NAMESPACE))
        return found
