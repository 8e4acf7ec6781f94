"""Several hosts for tests: one coordinator, and agents that each have a folder of their own, as on machines apart."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated.control_pb2_grpc import ControlStub
from tests.support.nodes import Nodes, wait_for

__all__ = ["STEPS", "Hosts", "finished_steps"]

# Every rank notes each step that it has finished, and saves only where it leaves or ends.
STEPS = """
import os, sys, time, numpy, strata
total, pause, folder = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
run = strata.init(name="steps")
with run.checkpoints() as checkpoints, open(f"{folder}/{run.rank}.steps", "a", buffering=1) as ledger:
    found = checkpoints.recover()
    step = found.info.step if found else 0
    ledger.write(f"from {step}\\n")
    while step < total and not run.should_stop():
        run.gang.sum(numpy.zeros(1))
        step += 1
        ledger.write(f"{step}\\n")
        run.log({"loss": 1 / step}, step=step)
        time.sleep(pause)
    checkpoints.save({"step": numpy.array([step])}, step=step, epoch=0)
run.finish()
"""


class Hosts(Nodes):
    """A coordinator and agents by name. All keep checkpoints in one folder."""

    def host_dir(self, name: str) -> Path:
        return self.data_dir.parent / name

    def start_host(self, name: str, slots: int = 2, **environment: str) -> str:
        """Starts an agent, and returns its id."""
        folder = self.host_dir(name)
        folder.mkdir(exist_ok=True)
        ready = folder / "agent.json"
        ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "strata.agent", "--data-dir", str(folder), "--coordinator", self.address]
        with (folder / "agent.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [*self.prefix(name), *command, "--slots", str(slots)],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**self._clean(), **environment},
                cwd=folder,
            )
        wait_for(lambda: ready.exists(), what=f"agent {name} attached")
        return str(json.loads(ready.read_text())["agent_id"])

    def prefix(self, name: str) -> list[str]:
        """What stands in front of the commands of a host."""
        return []

    def _clean(self) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("STRATA_")}
        token = (self.data_dir / "token").read_text().strip()
        return {**inherited, "STRATA_TOKEN": token, "STRATA_CHECKPOINT_BUCKET": str(self.data_dir / "checkpoints")}

    def drain(self, host: str, reason: str = "", deadline: float | None = None) -> None:
        """By its agent's id. What runs there saves and leaves before the deadline (Unix seconds)."""
        channel = self.channel()
        asked = ct.DrainRequest(host=host, reason=reason, deadline=deadline)
        channel.call(channel.stub(ControlStub).DrainAgent, asked)

    def undrain(self, host: str) -> None:
        channel = self.channel()
        channel.call(channel.stub(ControlStub).DrainAgent, ct.DrainRequest(host=host, undo=True))

    def submit_steps(self, pause_s: float, workers: int = 2, total: int = 10**9, **spec: object) -> str:
        """A task of `STEPS`."""
        script = self.data_dir.parent / "steps.py"
        script.write_text(STEPS)
        arguments = (str(total), str(pause_s), str(self.data_dir.parent))
        return self.submit(name="steps", worker_count=workers, entrypoint=("python", str(script), *arguments), **spec)

    def noted(self, rank: int) -> list[str]:
        path = self.data_dir.parent / f"{rank}.steps"
        return path.read_text().splitlines() if path.exists() else []

    def host_ranks(self, name: str, task_id: str = "") -> dict[int, int]:
        """rank → pid of the ranks that run on a host, of one task where there are more."""
        found = {}
        for path in (self.host_dir(name) / "agent" / "ranks").glob(f"{task_id}*.json"):
            try:
                record = json.loads(path.read_text())
            except (OSError, ValueError):
                continue
            if record["handle"] and not record["ended"]:
                found[record["rank"]] = int(record["handle"].partition(":")[0])
        return found

    def close(self) -> None:
        self.kill_hosts(*[name for name in self._processes if self.host_dir(name).is_dir()])
        super().close()

    def kill_hosts(self, *names: str) -> None:
        """kill -9 of all that runs on these hosts: the agents, then their ranks."""
        for name in names:
            self.kill(name)
        for pid in [pid for name in names for pid in self.host_ranks(name).values()]:
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def finished_steps(lines: list[str]) -> tuple[int, list[int], list[int]]:
    """Of one rank's notes: how many attempts there were, which steps were done more than once, and which never."""
    done = Counter(int(line) for line in lines if line.isdecimal())
    last = max(done, default=0)
    twice = [step for step, times in done.items() if times > 1]
    return len(lines) - sum(done.values()), twice, [step for step in range(1, last + 1) if step not in done]
