"""Agents as actors on an existing Ray cluster. Each actor runs one agent as a process of its own and ends with it; Ray
restarts the actor when a node dies, Strata decides about ranks. A cluster with token auth is joined with
RAY_AUTH_TOKEN.
"""

import contextlib
import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from strata.errors import InvalidArgument, MissingExtra, Unavailable
from strata.launchers.base import Exit, LaunchSpec, Standing
from strata.launchers.local import LocalLauncher

__all__ = ["RayLauncher"]

_NAMESPACE = "strata"
_POLL_S = 0.2
_CALL_S = 10.0
_STAYS_S = 600.0  # after an end with an error, for whoever asks how it was
_OTHERS_S = 60.0  # within which agents that end with one task have all ended
_NUMBERS = ("num_cpus", "num_gpus")
_PLACEMENTS = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
_OPTIONS = ("address", *_NUMBERS, "placement", "runtime_env")


class _AgentActor:
    """Runs inside Ray's worker process. An actor that Ray starts again finds the agent that its predecessor left. It
    ends with its agent, whether or not anybody is left who would stop it; the first one takes the placement group
    along, when the others are gone."""

    def __init__(self, argv: list[str], tag: str, number: int, copies: int, env: dict[str, str], log: str) -> None:
        self._launcher = LocalLauncher()
        self._tag, self._number, self._copies = tag, number, copies
        out = Path(log) if log else None
        name = f"{tag}-{number}"
        spec = LaunchSpec(argv=tuple(argv), tag=name, env={**os.environ, **env}, stdout=out, stderr=out)
        self._handle = self._launcher.adopt(name) or self._launcher.start(spec)
        threading.Thread(target=self._end_with_agent, name="strata-end", daemon=True).start()

    def _end_with_agent(self) -> None:
        import ray

        while (ended := self._launcher.poll(self._handle)) is None:
            time.sleep(_POLL_S)
        time.sleep(_STAYS_S if ended.code else 0.0)
        if self._number == 0:
            deadline = time.monotonic() + _OTHERS_S
            while len(_find_actors(ray, self._tag, self._copies)) > 1 and time.monotonic() < deadline:
                time.sleep(_POLL_S)
            _remove_group(ray, self._tag)
        ray.kill(ray.get_runtime_context().current_actor)

    def poll(self) -> tuple[bool, int | None]:
        """Whether it has ended, and how."""
        ended = self._launcher.poll(self._handle)
        return ended is not None, ended.code if ended else None

    def signal(self, number: int) -> None:
        self._launcher.signal(self._handle, number)


class RayLauncher:
    """A handle is the tag and the number of actors, whose names are made from them. `options`: the cluster's address,
    the num_cpus and num_gpus of each agent, the strategy of a placement group for all of them (without one, they are
    spread as far as that goes), and Ray's runtime_env as JSON."""

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        given = dict(options or {})
        for name in given:
            if name not in _OPTIONS:
                raise InvalidArgument(
                    f"the ray launcher knows no option {name!r}", hint=f"Known: {', '.join(_OPTIONS)}."
                )
        self._address = given.get("address", "auto")
        self._placement = given.get("placement", "").upper()
        if self._placement and self._placement not in _PLACEMENTS:
            known = ", ".join(_PLACEMENTS)
            raise InvalidArgument(f"placement is {given['placement']!r}, Ray knows {known}")
        self._runtime_env = _read_runtime_env(given.get("runtime_env", "{}"))
        try:
            self._resources = {name: float(given[name]) for name in _NUMBERS if name in given}
        except ValueError:
            numbers = {name: given[name] for name in _NUMBERS if name in given}
            raise InvalidArgument(f"num_cpus and num_gpus are numbers, not {numbers}") from None

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
        group = self._group(ray, spec)
        for number in range(spec.copies):
            options = {
                **self._resources,
                "name": f"{spec.tag}-{number}",
                "namespace": _NAMESPACE,
                "lifetime": "detached",
                "num_cpus": self._cpus(spec),
                "max_restarts": -1,
                "scheduling_strategy": "SPREAD" if group is None else group(number),
                **({"runtime_env": self._runtime_env} if self._runtime_env else {}),
            }
            env = {**spec.env, "STRATA_AGENT_NUMBER": str(number)}
            log = f"{spec.stdout}.{number}" if spec.stdout else ""
            actor.options(**options).remote(list(spec.argv), spec.tag, number, spec.copies, env, log)
        return json.dumps({"tag": spec.tag, "copies": spec.copies})

    def _group(self, ray: Any, spec: LaunchSpec) -> Callable[[int], Any] | None:
        """Makes the placement group, if one was asked for; returns what leads each copy to its own place in it."""
        if not self._placement:
            return None
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        each = {"CPU": self._cpus(spec), "GPU": self._resources.get("num_gpus", 0.0)}
        bundles = [{kind: number for kind, number in each.items() if number} for _ in range(spec.copies)]
        group = ray.util.placement_group(bundles, strategy=self._placement, name=spec.tag, lifetime="detached")
        return lambda number: PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=number)

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
        _remove_group(ray, json.loads(handle)["tag"])
        return ended

    def _actors(self, handle: str) -> list[Any]:
        known = json.loads(handle)
        return _find_actors(self._ray(), known["tag"], known["copies"])


def _find_actors(ray: Any, tag: str, copies: int) -> list[Any]:
    found = []
    for number in range(copies):
        with contextlib.suppress(ValueError):  # Ray's word for a name that nobody has
            found.append(ray.get_actor(f"{tag}-{number}", namespace=_NAMESPACE))
    return found


def _remove_group(ray: Any, tag: str) -> None:
    with contextlib.suppress(ValueError):  # there was none
        ray.util.remove_placement_group(ray.util.get_placement_group(tag))


def _read_runtime_env(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidArgument(
            f"runtime_env is {text[:80]!r}, which is no JSON object",
            hint="""For example -o runtime_env='{"env_vars": {"NCCL_DEBUG": "INFO"}}'.""",
        )
    return found


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
