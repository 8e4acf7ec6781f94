"""What agents are told to run for the ranks of a task: the command line, and the environment in which any training
script finds its place. Starts nothing.
"""

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from strata.cluster.members import Agent
from strata.cluster.tasks import Task
from strata.protocol.generated import agents_pb2 as ag
from strata.types.datasets import DatasetSpec
from strata.types.plain import to_plain
from strata.types.tasks import TaskStatus, worker_id_of

__all__ = ["BUILTIN_ENTRYPOINTS", "Launch", "desired_state", "pick_ports"]

# "python" stands for the interpreter of the agent that starts it. -P: a folder named strata in the working folder of a
# task is not ours, and must not be taken for it.
BUILTIN_ENTRYPOINTS: Mapping[str, Sequence[str]] = {"training": ("python", "-P", "-m", "strata.worker.trainer")}
DEFAULT_GRACE_S = 30.0
_DEFAULTS = {
    "OMP_NUM_THREADS": "1",  # as torchrun does: ranks share the cores
    "PYTHONUNBUFFERED": "1",  # a rank that is killed must not take its last lines with it
}


class Launch:
    """What the ranks of a task's current attempt are told to run. What they have in common is worked out once, so that
    one of ten thousand costs what one of ten does. `private` is the part of the environment that is in no state."""

    def __init__(
        self,
        task: Task,
        entrypoints: Mapping[str, Sequence[str]],
        dataset: DatasetSpec | None,
        private: Mapping[str, str],
    ) -> None:
        self.task = task
        self._ranks: dict[str, list[int]] = {}  # by host, in order
        for rank, agent_id in enumerate(task.course.placement):
            self._ranks.setdefault(agent_id, []).append(rank)
        self._nodes = {agent_id: str(number) for number, agent_id in enumerate(self._ranks)}
        # A type that strata.toml no longer knows must fail its task with a sentence, not the coordinator.
        unknown = (f"<entrypoint of task type {task.spec.type!r}>",)
        self._argv = task.spec.entrypoint or tuple(entrypoints.get(task.spec.type, unknown))
        self._common = {**_DEFAULTS, **private, **_environment(task, len(self._ranks), dataset)}

    @property
    def agents(self) -> Set[str]:
        return self._ranks.keys()

    def ranks_on(self, agent_id: str) -> Sequence[int]:
        return self._ranks.get(agent_id, ())

    def processes_on(self, agent_id: str, look_of: Callable[[Task, int], str]) -> Iterator[ag.DesiredProcess]:
        """The ranks of one host: each to run, to be stopped with grace, or to be ended at once because all its unsaved
        work is void. `look_of` asks where a rank stands."""
        for local_rank, rank in enumerate(self.ranks_on(agent_id)):
            yield self._process(rank, local_rank, agent_id, look_of(self.task, rank))

    def _process(self, rank: int, local_rank: int, agent_id: str, look: str) -> ag.DesiredProcess:
        task, node, worker_id = self.task, self._nodes[agent_id], worker_id_of(self.task.task_id, rank)
        own = {
            "STRATA_WORKER_ID": worker_id,
            "STRATA_INCARNATION": task.incarnation(rank),
            "STRATA_RANK": str(rank),
            "STRATA_LOCAL_RANK": str(local_rank),
            "RANK": str(rank),
            "LOCAL_RANK": str(local_rank),
            "NODE_RANK": node,
            "GROUP_RANK": node,
            "LOCAL_WORLD_SIZE": str(len(self._ranks[agent_id])),
        }
        return ag.DesiredProcess(
            task_id=task.task_id,
            attempt=task.attempt,
            rank=rank,
            world_size=task.size,
            local_rank=local_rank,
            argv=self._argv,
            env={**self._common, **own},
            working_dir=task.spec.working_dir,
            code=task.spec.code,
            grace_s=_grace_s(task),
            stop=task.status is not TaskStatus.RUNNING,
            worker_id=worker_id,
            life=task.course.life(rank),
            spares=task.spec.spares,
            look=look,
            hangs=_hang(task, rank),
            gpus=task.spec.gpus_per_worker,
        )


def desired_state(agent: Agent | None, processes: Iterable[ag.DesiredProcess], *, over: bool) -> ag.DesiredState:
    """All that one agent is told. Whoever started it for a task may be gone by the time that the task is `over`."""
    desired = ag.DesiredState(processes=processes, over=over)
    if agent is not None:
        desired.draining = bool(agent.draining)
        if agent.deadline is not None:
            desired.leave_by = agent.deadline
    return desired


def _hang(task: Task, rank: int) -> str:
    """Why this rank is to be ended; empty for one that may go on."""
    course = task.course
    if task.status is not TaskStatus.RUNNING or course.stuck_rank != rank or course.hung_s is None:
        return ""
    return f"no step for {course.hung_s:.0f} s at step {course.stuck_step}"


def _grace_s(task: Task) -> float:
    if task.status is TaskStatus.RECOVERING or task.course.hurry:
        return 0.0
    given = task.spec.config.get("grace_s", DEFAULT_GRACE_S)
    return float(given) if isinstance(given, int | float) and 0 <= given <= 3600 else DEFAULT_GRACE_S


def _environment(task: Task, num_hosts: int, dataset: DatasetSpec | None) -> dict[str, str]:
    """What all ranks have alike."""
    course, spec = task.course, task.spec
    world = str(task.size)
    environment = {
        "STRATA_TASK_ID": task.task_id,
        "STRATA_RUN_ID": task.task_id,
        "STRATA_ATTEMPT": str(task.attempt),
        "STRATA_WORLD_SIZE": world,
        "STRATA_WORKER_COUNT": str(spec.worker_count),
        "STRATA_CONFIG_JSON": json.dumps(dict(spec.config)),
        "STRATA_DATASET_ID": spec.dataset_id,
        "WORLD_SIZE": world,
        "GROUP_WORLD_SIZE": str(num_hosts),
        "MASTER_ADDR": course.master_addr,
        "MASTER_PORT": str(course.master_port),
        "STRATA_GANG_PORT": str(course.gang_port),
        "STRATA_WORLD_NUMBER": str(course.world),
    }
    if spec.spares:
        environment["STRATA_SPARES"] = str(spec.spares)
    if spec.fork is not None:
        environment["STRATA_FORK_JSON"] = json.dumps(to_plain(spec.fork))
    if dataset is not None:
        source = {
            "path": dataset.path,
            "format": dataset.format,
            "shuffle": dataset.shuffle,
            "seed": dataset.seed,
            "total_samples": dataset.total_samples,
        }
        environment["STRATA_DATASET_JSON"] = json.dumps(source)
    return environment


def pick_ports(ports: range, tasks: Iterable[Task]) -> tuple[int, int]:
    """Two ports where ranks meet, MASTER_PORT for a framework and one for `run.gang`, of those that the settings say;
    none that another task has. The agent of rank 0 checks that both are free; if not, the attempt is repeated with
    others."""
    going = [task.course for task in tasks if not task.status.final]
    taken = {port for course in going for port in (course.master_port, course.gang_port)}
    free = [port for port in ports if port not in taken]
    first, second = secrets.SystemRandom().sample(free if len(free) > 1 else ports, 2)
    return first, second
