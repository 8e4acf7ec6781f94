"""Agents as actors on an existing Ray cluster. Each actor runs one agent as a process of its own; Ray restarts the
actor when a node dies, Strata decides about ranks. A cluster with token auth is joined with RAY_AUTH_TOKEN.
"""

import contextlib
import json
import logging
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strata.errors import InvalidArgument, MissingExtra, Unavailable
from strata.launchers.base import Exit, LaunchSpec, Standing
from strata.launchers.local import LocalLauncher

__all__ = ["RayLauncher"]

_NAMESPACE = "strata"
_POLL_S = 0.2
_CALL_S = 10.0
_OPTIONS = ("address", "num_cpus", "num_gpus")


class _AgentActor:
    """Runs inside Ray's worker process. An actor that Ray starts again finds the agent that its predecessor left."""

    def __init__(self, argv: list[str], tag: str, env: dict[str, str], log: str) -> None:
        self._launcher = LocalLauncher()
        out = Path(log) if log else None
        spec = LaunchSpec(argv=tuple(argv), tag=tag, env={**os.environ, **env}, stdout=out, stderr=out)
        self._handle = self._launcher.adopt(tag) or self._launcher.start(spec)

    def poll(self) -> tuple[bool, int | None]:
        """Whether it has ended, and how."""
        ended = self._launcher.poll(self._handle)
        return ended is not None, ended.code if ended else None

    def signal(self, number: int) -> None:
        self._launcher.signal(self._handle, number)


class RayLauncher:
    """A handle is the tag and the number of actors, whose names are made from them. `options`: the cluster's address,
    and the num_cpus and num_gpus of each agent."""

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        given = dict(options or {})
        for name in given:
            if name not in _OPTIONS:
                raise InvalidArgument(
                    f"the ray launcher knows no option {name!r}", hint=f"Known: {', '.join(_OPTIONS)}."
                )
        self._address = given.pop("address", "auto")
        try:
            self._resources = {name: float(value) for name, value in given.items()}
        except ValueError:
            raise InvalidArgument(f"num_cpus and num_gpus are numbers, not {given}") from None

    def _ray(self) -> Any:
        if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
            os.environ.setdefault("RAY_AUTH_MODE", "token")  # Ray ignores the token otherwise
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "error")  # its retries are no news for a terminal
        before = signal.getsignal(signal.SIGTERM)
        try:
            import ray
        except ImportError:
            raise MissingExtra("ray", "ray") from None
        if not ray.is_initialized():
            try:
                ray.init(self._address, namespace=_NAMESPACE, log_to_driver=False, logging_level=logging.CRITICAL)
            except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
                raise Unavailable(
                    f"no Ray cluster answers at {self._address}: {_first_line(error)}",
                    hint="Start one with `ray start --head`; RAY_ADDRESS and RAY_AUTH_TOKEN lead to it.",
                ) from None
        with contextlib.suppress(ValueError):  # not the main thread, where Ray leaves it alone, too
            signal.signal(signal.SIGTERM, before)  # Ray takes it on import
        return ray

    def prepare(self, spec: LaunchSpec) -> None:
        ray = self._ray()
        wanted = {"CPU": self._cpus(spec), "GPU": self._resources.get("num_gpus", 0.0)}
        there = ray.cluster_resources()
        for kind, each in wanted.items():
            if there.get(kind, 0.0) < each * spec.copies:
                raise Unavailable(
                    f"the Ray cluster has {there.get(kind, 0.0):g} {kind}s, {spec.copies} agents need {each:g} each",
                    hint=f"Ask for fewer with --launcher-option num_{kind.lower()}s=…, or add nodes.",
                )

    def _cpus(self, spec: LaunchSpec) -> float:
        return self._resources.get("num_cpus", float(spec.cpus))

    def start(self, spec: LaunchSpec) -> str:
        ray = self._ray()
        actor = ray.remote(_AgentActor)
        for number in range(spec.copies):
            options = {
                **self._resources,
                "name": f"{spec.tag}-{number}",
                "namespace": _NAMESPACE,
                "lifetime": "detached",
                "num_cpus": self._cpus(spec),
                "max_restarts": -1,
                "scheduling_strategy": "SPREAD",
            }
            env = {**spec.env, "STRATA_AGENT_NUMBER": str(number)}
            log = f"{spec.stdout}.{number}" if spec.stdout else ""
            actor.options(**options).remote(list(spec.argv), f"{spec.tag}-{number}", env, log)
        return json.dumps({"tag": spec.tag, "copies": spec.copies})

    def poll(self, handle: str) -> Exit | None:
        """It runs while any of its agents does, or waits for its place."""
        answers = self._answers(handle)
        if any(answer is None or not answer[0] for answer in answers):
            return None
        codes = [answer[1] for answer in answers if answer is not None]
        bad = [code for code in codes if code]
        if not codes:
            return Exit(code=None, reason="Ray knows no such actors")
        return Exit(code=bad[0] if bad else codes[0], reason=f"agents ended with {codes}")

    def describe(self, handle: str) -> Standing:
        try:
            answers = self._answers(handle, timeout_s=1.0)
        except Unavailable as error:
            return Standing(text=str(error))
        placed = sum(answer is not None for answer in answers)
        running = sum(answer is not None and not answer[0] for answer in answers)
        text = f"{placed} of {len(answers)} actors are placed, {running} of their agents run"
        return Standing(text=text, pending=placed < len(answers))

    def _answers(self, handle: str, timeout_s: float = _CALL_S) -> list[tuple[bool, int | None] | None]:
        """For each actor whether its agent has ended, and with which code; None while the actor has no place."""
        ray = self._ray()
        asked = [actor.poll.remote() for actor in self._actors(handle)]
        done = set(ray.wait(asked, num_returns=len(asked), timeout=timeout_s)[0]) if asked else set()
        answers: list[tuple[bool, int | None] | None] = []
        for reference in asked:
            try:
                answers.append(ray.get(reference) if reference in done else None)
            except ray.exceptions.RayActorError:  # between two lives
                answers.append(None)
            except ray.exceptions.RayError as error:
                raise Unavailable(f"Ray could not start an agent: {_first_line(error)}") from None
        return answers

    def signal(self, handle: str, number: int) -> None:
        ray = self._ray()
        told = [actor.signal.remote(int(number)) for actor in self._actors(handle)]
        if told:
            ray.wait(told, num_returns=len(told), timeout=_CALL_S)

    def stop(self, handle: str, grace_s: float) -> Exit:
        ray = self._ray()
        deadline = time.monotonic() + (0.0 if self.describe(handle).pending else grace_s)
        self.signal(handle, signal.SIGTERM)
        while (ended := self.poll(handle)) is None and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        if ended is None:
            self.signal(handle, signal.SIGKILL)
            ended = Exit(code=-signal.SIGKILL, reason="killed after its grace")
        for actor in self._actors(handle):
            ray.kill(actor)
        return ended

    def _actors(self, handle: str) -> list[Any]:
        ray = self._ray()
        known = json.loads(handle)
        found = []
        for number in range(known["copies"]):
            with contextlib.suppress(ValueError):  # Ray's word for a name that nobody has
                found.append(ray.get_actor(f"{known['tag']}-{number}", namespace=_NAMESPACE))
        return found


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
