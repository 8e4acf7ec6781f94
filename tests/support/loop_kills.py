"""A script with `strata.training` under kills: of a rank, the agent, the coordinator and all of it, in turn; and the
losses that it printed, by rank and step. `STRATA_KILLS=20 pytest …` kills as often.
"""

import os
import random
import re
import signal
import subprocess
from functools import partial
from pathlib import Path

from strata.checkpoint.manager import CheckpointManager
from strata.types.tasks import TaskStatus
from tests.support.nodes import Nodes, wait_for

__all__ = ["KILLS", "losses_in", "newest_step", "read_to", "train", "train_through_kills"]

KILLS = int(os.environ.pop("STRATA_KILLS", "4"))  # popped: a script alone refuses settings it does not know
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_EVERY = 10
_LINE = re.compile(r"rank (\d+) step (\d+) loss (-?0x[0-9a-f.]+p[-+]\d+)")

Losses = dict[tuple[int, int], set[str]]  # rank and step → every loss that was printed of it


def losses_in(text: str) -> Losses:
    found: Losses = {}
    for rank, step, loss in _LINE.findall(text):
        found.setdefault((int(rank), int(step)), set()).add(loss)
    return found


def read_to(process: "subprocess.Popen[str]", step: int) -> str:
    """What a script has printed when its rank 0 has done that step."""
    assert process.stdout is not None
    text = ""
    while (0, step) not in losses_in(text):
        line = process.stdout.readline()
        assert line, (text, process.stderr and process.stderr.read())
        text += line
    return text


def train(nodes: Nodes, script: Path, steps: int, ranks: int = 2, pause_s: float = 0.0) -> str:
    command = ("python", str(script), "--steps", str(steps), "--every", str(_EVERY), "--pause", str(pause_s))
    return nodes.submit(name="loop", worker_count=ranks, entrypoint=command, max_restarts=1_000)


def newest_step(nodes: Nodes, task_id: str) -> int:
    with CheckpointManager(str(nodes.data_dir / "checkpoints" / task_id), rank=0, world_size=1) as checkpoints:
        newest = checkpoints.get_latest()
    return -1 if newest is None else newest.step


def output_of(nodes: Nodes, task_id: str) -> str:
    files = (nodes.data_dir / "agent" / "logs" / task_id).glob("*/*stdout")
    return "\n".join(path.read_text() for path in files)


def train_through_kills(folder: Path, script: Path, kills: int, *, pause_s: float, patience_s: float) -> None:
    """Raises AssertionError when a loss differs from the uninterrupted run's, or one is missing."""
    steps = 40 * (kills + 2)
    with Nodes(folder, slots=2) as nodes:
        nodes.start()
        calm = train(nodes, script, steps)
        assert nodes.wait_task(calm, timeout_s=patience_s).status is TaskStatus.COMPLETED, output_of(nodes, calm)
        expected = losses_in(output_of(nodes, calm))
        assert len(expected) == 2 * steps
        task_id = train(nodes, script, steps, pause_s=pause_s)
        chance, before = random.Random(17), 0  # reproducible
        for number in range(kills):
            before = wait_for(partial(_newer, nodes, task_id, before), patience_s, "a checkpoint after the last kill")
            assert before < steps, "the training was over before it was killed so often: it needs more steps"
            _kill(nodes, task_id, ("rank", "agent", "coordinator", "all")[number % 4], chance)
        task = nodes.wait_task(task_id, timeout_s=patience_s)
        assert task.status is TaskStatus.COMPLETED, task.reason
        assert task.attempt > 1
        assert losses_in(output_of(nodes, task_id)) == expected
        assert newest_step(nodes, task_id) == steps


def _newer(nodes: Nodes, task_id: str, before: int) -> int:
    newest = newest_step(nodes, task_id)
    return newest if newest > before else 0


def _kill(nodes: Nodes, task_id: str, what: str, chance: random.Random) -> None:
    pids = wait_for(lambda: nodes.rank_pids(task_id), 60, "a rank")
    parts = ("coordinator", "agent") if what == "all" else () if what == "rank" else (what,)
    for part in parts:
        nodes.kill(part)
    victims = list(pids.values()) if what == "all" else [chance.choice(list(pids.values()))] if what == "rank" else []
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it has just ended
            continue
    if parts:
        nodes.start(*parts)
