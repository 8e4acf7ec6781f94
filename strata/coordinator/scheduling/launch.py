"""What an agent is told to run for one rank: the command line, and the environment in which any training script finds
its place. Starts nothing.
"""

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence

from strata.cluster.tasks import Task
from strata.protocol.generated import agents_pb2 as ag
from strata.types.datasets import DatasetSpec
from strata.types.tasks import TaskStatus, worker_id_of

__all__ = ["BUILTIN_ENTRYPOINTS", "desired_process", "pick_ports"]

# "python" stands for the interpreter of the agent that starts it. -P: a folder named strata in the working folder of a
# task is not ours, and must not be taken for it.
BUILTIN_ENTRYPOINTS: Mapping[str, Sequence[str]] = {"training": ("python", "-P", "-m", "strata.worker.trainer")}
DEFAULT_GRACE_S = 30.0
_DEFAULTS = {
    "OMP_NUM_THREADS": "1",  # as torchrun does: ranks share the cores
    "PYTHONUNBUFFERED": "1",  # a rank that is killed must not take its last lines with it
}


def desired_process(
    task: Task,
    rank: int,
    entrypoints: Mapping[str, Sequence[str]],
    dataset: DatasetSpec | None,
    private: Mapping[str, str],
    look: str = "",
) -> ag.DesiredProcess:
    """A rank of the task's current attempt: to run, to be stopped with grace, or to be ended at once because all its
    unsaved work is void. `private` is the part of its environment that is in no state; `look` asks where it stands."""
    placement = task.course.placement
    local_rank = placement[:rank].count(placement[rank])
    # A type that strata.toml no longer knows must fail its task with a sentence, not the coordinator.
    unknown = (f"<entrypoint of task type {task.spec.type!r}>",)
    argv = task.spec.entrypoint or tuple(entrypoints.get(task.spec.type, unknown))
    return ag.DesiredProcess(
        task_id=task.task_id,
        attempt=task.attempt,
        rank=rank,
        world_size=task.size,
        local_rank=local_rank,
        argv=argv,
        env={**_DEFAULTS, **private, **_environment(task, rank, local_rank, dataset)},
        working_dir=task.spec.working_dir,
        grace_s=_grace_s(task),
        stop=task.status is not TaskStatus.RUNNING,
        worker_id=worker_id_of(task.task_id, rank),
        life=task.course.life(rank),
        spares=task.spec.spares,
        look=look,
        hangs=_hang(task, rank),
    )


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


def _environment(task: Task, rank: int, local_rank: int, dataset: DatasetSpec | None) -> dict[str, str]:
    course, spec = task.course, task.spec
    world = str(task.size)
    hosts = list(dict.fromkeys(course.placement))
    node = str(hosts.index(course.placement[rank]))
    environment = {
        "STRATA_TASK_ID": task.task_id,
        "STRATA_RUN_ID": task.task_id,
        "STRATA_ATTEMPT": str(task.attempt),
        "STRATA_WORKER_ID": worker_id_of(task.task_id, rank),
        "STRATA_INCARNATION": task.incarnation(rank),
        "STRATA_RANK": str(rank),
        "STRATA_WORLD_SIZE": world,
        "STRATA_WORKER_COUNT": str(spec.worker_count),
        "STRATA_LOCAL_RANK": str(local_rank),
        "STRATA_CONFIG_JSON": json.dumps(dict(spec.config)),
        "STRATA_DATASET_ID": spec.dataset_id,
        "RANK": str(rank),
        "WORLD_SIZE": world,
        "LOCAL_RANK": str(local_rank),
        "NODE_RANK": node,
        "GROUP_RANK": node,
        "GROUP_WORLD_SIZE": str(len(hosts)),
        "LOCAL_WORLD_SIZE": str(course.placement.count(course.placement[rank])),
        "MASTER_ADDR": course.master_addr,
        "MASTER_PORT": str(course.master_port),
        "STRATA_GANG_PORT": str(course.gang_port),
        "STRATA_WORLD_NUMBER": str(course.world),
    }
    if spec.spares:
        environment["STRATA_SPARES"] = str(spec.spares)
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
