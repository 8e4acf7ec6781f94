"""Faults that a test injects into a real training task, and what must be said of each: the corpus of `strata why`."""

import logging
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.hosts import Hosts
from tests.support.nodes import wait_for

__all__ = ["KINDS", "Corpus", "Outcome", "refusing_bucket"]

_log = logging.getLogger(__name__)
_AT_ONCE = 3

# Ranks that meet at every step. The victim does it at one step of the first attempt; `ready` waits for the test's act.
_TRAIN = """
import ctypes, os, resource, sys, time, numpy, strata
how, victim, at, place = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
rank, first = int(os.environ["RANK"]), os.environ["STRATA_ATTEMPT"] == "1"
mine = first and rank == victim
if how == "import_error" and mine:
    import a_module_that_nobody_has
run = strata.init(name="faults")
saves = how in ("save", "refused")
with run.checkpoints(*([place] if saves else [])) as checkpoints:
    found = None if saves else checkpoints.recover()
    step = found.info.step if found else 0
    while step < 10**6 and not run.should_stop():
        run.gang.sum(numpy.zeros(1))
        step += 1
        bad = how == "bad_loss" and mine and step >= at
        run.log({"loss": float("nan") if bad else 1 / step}, step=step)
        time.sleep(0.05)
        if saves and step == at:
            checkpoints.save({"step": numpy.zeros(300_000)}, step=step)
        elif not saves and step % 5 == 0 and step != at:
            checkpoints.save({"step": numpy.array([step])}, step=step)
        if step != at or not mine:
            continue
        if how == "exception":
            {}["learning rate"]
        elif how == "out_of_memory":
            resource.setrlimit(resource.RLIMIT_AS, (2**30, resource.RLIM_INFINITY))
            bytearray(2**33)
        elif how == "hang":
            time.sleep(10**6)
        elif how == "bad_loss":
            if at % 2:
                raise FloatingPointError("the loss is nan")
            sys.exit("stopping: bad loss")
        elif how == "dump":
            with open(f"{place}/dump.{rank}", "wb", buffering=0) as file:
                while True:
                    file.write(bytes(65536))
        elif how == "crash":
            ctypes.string_at(8)
        elif how == "exit":
            sys.exit(3)
        else:
            print("ready", flush=True)
    if not saves and (step % 5 or step == at):
        checkpoints.save({"step": numpy.array([step])}, step=step)
run.finish()
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done to which rank or host, and what was said of it."""

    name: str
    kinds: tuple[str, ...]
    rank: int | None
    host: str | None
    verdict: dict[str, Any]

    @property
    def right(self) -> bool:
        """The kind, and the rank or host where the fault has one; without one in the truth, any rank may be named."""
        told = self.verdict
        return (
            told["kind"] in self.kinds
            and (self.rank is None or told["rank"] == self.rank)
            and (self.host is None or told["host"] == self.host)
        )

    @property
    def wrongly_blamed(self) -> bool:
        """Somebody is named who did not do it, or for what did not happen."""
        told = self.verdict
        return not self.right and told["kind"] != "unknown"


@contextmanager
def refusing_bucket() -> Iterator[str]:
    """An S3 service that knows the bucket and takes nobody's key."""
    body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"

    class Refusal(BaseHTTPRequestHandler):
        def _refuse(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _refuse  # noqa: N815 - the base class's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusal)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Corpus:
    """Injects faults into tasks of one cluster with two hosts, one after the other."""

    def __init__(self, hosts: Hosts, full_disk: Path, bucket: str) -> None:
        self.hosts = hosts
        self.full_disk = full_disk
        self.bucket = bucket
        self.agents: dict[str, str] = {}  # id → name
        self.script = hosts.data_dir.parent / "faulty.py"
        self.script.write_text(_TRAIN)
        for name in ("first", "second"):
            self.start_host(name)

    def start_host(self, name: str) -> None:
        agent_id = self.hosts.start_host(name, 3 * _AT_ONCE, STRATA_TELEMETRY_ADDR=self.hosts.telemetry)
        self.agents[agent_id] = name

    def inject_all(self, seeds: int) -> list[Outcome]:
        """Faults of single ranks beside each other, those of hosts and of the coordinator alone."""
        cases = [(name, seed) for seed in range(seeds) for name in KINDS]
        together = [case for case in cases if not KINDS[case[0]].alone]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            outcomes = list(pool.map(lambda case: self.inject(*case), together))
        return outcomes + [self.inject(*one) for one in cases if KINDS[one[0]].alone]

    def inject(self, name: str, seed: int) -> Outcome:
        """One fault of this kind, with a victim, a step and a size that the seed decides; then the task is ended."""
        chance = random.Random(f"{name}-{seed}")
        size = chance.choice([2, 3])
        victim, at = chance.randrange(size), chance.randint(2, 9)
        act = KINDS[name]
        how = act.how(chance) if callable(act.how) else act.how
        env = {"AWS_ENDPOINT_URL": self.bucket, "AWS_ACCESS_KEY_ID": "wrong", "AWS_SECRET_ACCESS_KEY": "wrong"}
        place = "s3://runs/faults" if how == "refused" else str(self.full_disk)
        task_id = self.hosts.submit(
            name=name,
            worker_count=size,
            entrypoint=("python", str(self.script), how, str(victim), str(at), place),
            env={**env, "AWS_REGION": "us-east-1"},
            max_restarts=chance.choice([0, 1]),
            hang_timeout_s=4.0 if how == "hang" or "suspended" in act.kinds else None,
        )
        host = act.do(self, task_id, victim, chance) if act.do else None
        verdict = wait_for(lambda: self._settled(task_id, act), 60, f"a verdict on {name}, seed {seed}")
        self.hosts.tasks().stop(task_id, hurry=True)
        self.hosts.wait_task(task_id)
        outcome = Outcome(name, act.kinds, victim if act.of_rank else None, host, verdict)
        _log.info("%s, seed %d: %s %s", name, seed, outcome.right, verdict["sentence"])
        return outcome

    def _settled(self, task_id: str, act: "Act") -> dict[str, Any] | None:
        """The verdict once the observatory shows that the task has ended or gone on, and has its last points."""
        task = self.hosts.get(f"/api/tasks/{task_id}")
        if task is None or not (task["attempt"] > 1 or task["status"] == "failed" or act.of_coordinator):
            return None
        if "bad_loss" in act.kinds and not self._has_bad_points(task_id):
            return None
        told = self.hosts.get(f"/api/tasks/{task_id}/why")
        return None if told is None or told["kind"] == "none" else dict(told)

    def _has_bad_points(self, task_id: str) -> bool:
        query = f"SELECT count() AS n FROM metric_points WHERE run_id = '{task_id}' AND isNaN(value)"  # noqa: S608
        return bool(self.hosts.post("/api/sql", {"query": query})["rows"][0][0])

    # --- acts from outside

    def wait_ready(self, task_id: str, victim: int) -> str:
        """Until the victim has reached its step; the name of its host."""

        def ready() -> str | None:
            for name in self.agents.values():
                path = self.hosts.host_dir(name) / "agent" / "logs" / task_id / "1" / f"{victim}.stdout"
                if path.exists() and "ready" in path.read_text():
                    return name
            return None

        found: str = wait_for(ready, 60, f"rank {victim} of {task_id} at its step")
        return found

    def signal(self, task_id: str, victim: int, number: int) -> None:
        name = self.wait_ready(task_id, victim)
        os.kill(self.hosts.host_ranks(name, task_id)[victim], number)


def _kill(corpus: Corpus, task_id: str, victim: int, _: random.Random) -> None:
    corpus.signal(task_id, victim, signal.SIGKILL)


def _suspend(corpus: Corpus, task_id: str, victim: int, _: random.Random) -> None:
    corpus.signal(task_id, victim, signal.SIGSTOP)


def _ask(corpus: Corpus, task_id: str, victim: int, _: random.Random) -> None:
    corpus.signal(task_id, victim, signal.SIGTERM)


def _lose_host(corpus: Corpus, task_id: str, victim: int, _: random.Random) -> str:
    name = corpus.wait_ready(task_id, victim)
    agent_id = next(one for one, known in corpus.agents.items() if known == name)
    corpus.hosts.kill_hosts(name)
    wait_for(lambda: corpus.hosts.task(task_id).attempt > 1, 60, "the next attempt")
    told = _hostname(corpus, agent_id)
    corpus.start_host(name)
    return told


def _drain(corpus: Corpus, task_id: str, victim: int, _: random.Random) -> str:
    name = corpus.wait_ready(task_id, victim)
    agent_id = next(one for one, known in corpus.agents.items() if known == name)
    corpus.hosts.drain(agent_id, "for a test")
    wait_for(lambda: corpus.hosts.task(task_id).attempt > 1, 60, "the next attempt")
    told = _hostname(corpus, agent_id)
    corpus.hosts.undrain(agent_id)
    return told


def _restart_coordinator(corpus: Corpus, task_id: str, victim: int, _: random.Random) -> None:
    corpus.wait_ready(task_id, victim)
    term = corpus.hosts.get("/api/status")["term"]
    corpus.hosts.kill("coordinator")
    corpus.hosts.start("coordinator")
    wait_for(lambda: (corpus.hosts.get("/api/status") or {}).get("term", 0) > term, 60, "the feed of the new one")


def _unseen(corpus: Corpus, task_id: str, victim: int, _: random.Random) -> None:
    """A rank that ends while its agent is away: nobody learns how. If the agent takes long to be back, its host is
    lost."""
    name = corpus.wait_ready(task_id, victim)
    pid = corpus.hosts.host_ranks(name, task_id)[victim]
    corpus.hosts.kill(name)
    os.kill(pid, signal.SIGKILL)
    corpus.start_host(name)


def _hostname(corpus: Corpus, agent_id: str) -> str:
    agents = corpus.hosts.records().agents
    return agents[agent_id].hostname or agent_id


@dataclass(frozen=True, slots=True)
class Act:
    """`how` the script does it itself, or what the test does; `of_rank` when one rank is to be named. What the test
    does without that may hit whatever else runs."""

    kinds: tuple[str, ...]
    how: str | Callable[[random.Random], str] = "ready"
    do: Callable[[Corpus, str, int, random.Random], str | None] | None = None
    of_rank: bool = True

    @property
    def of_coordinator(self) -> bool:
        return self.kinds == ("coordinator_restarted",)

    @property
    def alone(self) -> bool:
        """Nothing else may run meanwhile."""
        return self.do is not None and not self.of_rank


KINDS: dict[str, Act] = {
    "exception": Act(("exception",), "exception"),
    "killed": Act(("killed",), do=_kill),
    "out-of-memory": Act(("out_of_memory",), "out_of_memory"),
    "hang": Act(("hang",), "hang"),
    "suspended": Act(("suspended",), do=_suspend),
    "bad-loss": Act(("bad_loss",), "bad_loss"),
    "full-disk": Act(("disk_full",), "dump"),
    "full-disk-at-a-save": Act(("disk_full",), "save", of_rank=False),
    "bucket-that-refuses": Act(("storage_refused",), "refused", of_rank=False),
    "crash": Act(("crash",), "crash"),
    "import-error": Act(("import_error",), "import_error"),
    "exit": Act(("exit",), "exit"),
    "asked-to-stop": Act(("asked_to_stop",), do=_ask),
    "host-drained": Act(("host_drained",), do=_drain, of_rank=False),
    "host-lost": Act(("host_lost",), do=_lose_host, of_rank=False),
    "coordinator-killed": Act(("coordinator_restarted",), do=_restart_coordinator, of_rank=False),
    "unseen": Act(("unknown", "host_lost"), do=_unseen, of_rank=False),
}
