"""`strata run` and `strata resume`: submit a script as a task, or go on with one; follow its log, end with its result.
Starts a cluster if none answers, and agents through another launcher if asked to."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from strata.cli import ids
from strata.cli.attend import Attendance, TaskCluster, answers, task_cluster, whisper
from strata.cli.code import find_program, send_code
from strata.cli.fleet import Fleet, FleetRequest, open_fleet
from strata.cli.fleet_note import note_fleet, noted_fleet
from strata.cli.options import DataDir, Join, reach
from strata.cli.script import check_saves, saves_at_home
from strata.cli.show import resumed
from strata.cli.sizes import parse_size
from strata.cli.state import read_state
from strata.client.endpoints import Endpoints, find_endpoints
from strata.client.tasks import TasksClient, TaskView
from strata.config import Settings
from strata.errors import InvalidArgument, StrataError, UnknownTask
from strata.types.names import name_of
from strata.types.tasks import GROW_AFTER_S, LAUNCHERS, LOSS_WINDOW_S, MAX_LOSSES, MAX_STALLED, TaskSpec, TaskStatus

__all__ = ["add_to", "workers_of"]

_WORKERS_HELP = (
    "How many ranks. 2..8: as many as there are slots for, at least 2; it goes on with fewer when a host is gone and "
    "grows when slots are free again. Its script must save checkpoints."
)
_OPTION_HELP = (
    "NAME=VALUE for the launcher: host=a,b for ssh, sbatch's own for slurm, address= for ray, image= for kubernetes."
)
_SYNC_HELP = (
    "Send this folder along, as `--sync .`: every host runs the script in a copy of it. What .gitignore names stays "
    "behind, .env too. Without it all hosts must see the script under the same path."
)
_RESTARTS_HELP = (
    f"How many failures of its own it gets over, of which at most {MAX_STALLED - 1} in a row without a new checkpoint. "
    f"Kills from outside and lost hosts do not count: of these it gets over {MAX_LOSSES} within "
    f"{LOSS_WINDOW_S / 3600:g} hours without a new checkpoint, or as many as its restarts."
)
_HANG_HELP = (
    "End a rank that makes no step for so many SECONDS, with the stacks of its threads in the log, and go on from the "
    "last checkpoint; `off`: never. Default: learned from its steps, at least 600. `run.section` is no hang."
)
_GPUS_HELP = (
    "How many GPUs each rank alone holds; ranks go where so many are free. With 1, cuda:LOCAL_RANK is its own, as "
    "under torchrun; with more, it sees no others. 0: ranks are given none, and see what their agent sees."
)
_STRAGGLERS_HELP = (
    "Leave the host of a rank whose own part of a step takes far longer than the others', for minutes, at an agreed "
    "step; where the other hosts alone are quicker. Without it such a rank is only named."
)
_SPARES_HELP = (
    "Warm interpreters that each host keeps for the script: they have done its imports, and take the place of ranks "
    "that are started again. As many as a host has ranks makes every restart faster; each holds memory."
)


def add_to(app: typer.Typer) -> None:
    # Whatever stands behind the script belongs to the script.
    app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})(run)
    app.command()(resume)


def run(
    script: Annotated[str, typer.Argument(help="A Python script, or any program.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Its own arguments.")] = None,
    workers: Annotated[str, typer.Option("--workers", "-w", metavar="N|MIN..MAX", help=_WORKERS_HELP)] = "1",
    grow_after: Annotated[
        float, typer.Option("--grow-after", metavar="SECONDS", help="For how long slots must be free before it grows.")
    ] = GROW_AFTER_S,
    name: Annotated[str | None, typer.Option("--name", help="The task's name (default: the script's).")] = None,
    dataset: Annotated[str, typer.Option("--dataset", help="A registered dataset it reads.")] = "",
    launcher: Annotated[
        str, typer.Option("--launcher", help=f"Who starts the workers: {', '.join(LAUNCHERS)}.")
    ] = "local",
    nodes: Annotated[
        int | None, typer.Option("--nodes", min=1, help="Agents to start (default 1, or one per host).")
    ] = None,
    options: Annotated[list[str] | None, typer.Option("--launcher-option", "-o", help=_OPTION_HELP)] = None,
    shared_dir: Annotated[
        Path | None, typer.Option("--shared-dir", help="A folder that all nodes see (default: in the data folder).")
    ] = None,
    sync: Annotated[Path | None, typer.Option("--sync", metavar="FOLDER", help=_SYNC_HELP)] = None,
    max_restarts: Annotated[int, typer.Option("--max-restarts", help=_RESTARTS_HELP)] = 3,
    spares: Annotated[int, typer.Option("--spares", help=_SPARES_HELP)] = 0,
    hang_timeout: Annotated[str | None, typer.Option("--hang-timeout", help=_HANG_HELP)] = None,
    gpus_per_worker: Annotated[int, typer.Option("--gpus-per-worker", help=_GPUS_HELP)] = 0,
    exclude_stragglers: Annotated[bool, typer.Option("--exclude-stragglers", help=_STRAGGLERS_HELP)] = False,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Submit and return; print the task's id.")] = False,
    join: Join = None,
    data_dir: DataDir = None,
) -> None:
    """Run a script on several workers and follow its log; the exit code is the task's."""
    settings = reach(data_dir=data_dir, hang_timeout=hang_timeout, join=join)
    size = parse_size(workers)
    program = find_program(script, arguments or [], sync)
    spec = TaskSpec(
        name=name or name_of(Path(script).stem, "script"),
        dataset_id=dataset,
        worker_count=size.most,
        min_workers=size.least,
        grow_after_s=grow_after,
        entrypoint=program.entrypoint,
        launcher=_known(launcher),
        max_restarts=max_restarts,
        working_dir=program.working_dir,
        code=program.code.digest if program.code else "",
        spares=spares,
        hang_timeout_s=settings.hang_timeout,
        exclude_stragglers=exclude_stragglers,
        gpus_per_worker=gpus_per_worker,
        saves_at_home=saves_at_home(script),
    )
    if size.elastic:
        check_saves(script)
    fleet = FleetRequest(
        launcher=launcher, workers=size.most, nodes=nodes, options=tuple(options or ()), shared_dir=shared_dir
    )
    agents = open_fleet(fleet, settings, whisper)
    with task_cluster(settings, embed=not detach, workers=size.most if launcher == "local" else 0) as here:
        tasks = TasksClient(here.channel)
        if program.code is not None:
            whisper(send_code(here.channel, program.code))
        task_id = tasks.submit(spec)
        if agents is not None:
            note_fleet(settings.data_dir, task_id, fleet, agents.checkpoints)
        if detach:
            _let_go(tasks, task_id, agents, here.endpoints)
            return
        whisper(f"task {task_id}")
        attendance = Attendance(tasks, task_id, settings, here, "strata run")
        task = attendance.run() if agents is None else _on_agents(agents, attendance, here.endpoints, task_id)
    attendance.end(task)


def resume(
    task_id: Annotated[
        str,
        typer.Argument(help="The task's id, from `strata tasks` or the end of `strata run`.", callback=ids.task_id),
    ],
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return when it is in the queue.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Go on with a stopped or failed task from its last good checkpoint, and follow its log.

    One that is stopping is waited for.

    It stays the same task and the same run; its attempts are counted on, its restarts and losses anew. Agents that
    `strata run` started for it are started again.
    """
    settings = reach(data_dir=data_dir)
    fleet = noted_fleet(settings.data_dir, task_id)
    agents = open_fleet(fleet, settings, whisper) if fleet else None
    workers = workers_of(settings, task_id) if agents is None else 0
    with task_cluster(settings, embed=not detach, workers=workers) as here:
        tasks = TasksClient(here.channel)
        _wait_until_stopped(tasks, task_id, here)
        whisper(resumed(task_id, tasks.resume(task_id)))
        if detach:
            _let_go(tasks, task_id, agents, here.endpoints)
            return
        attendance = Attendance(tasks, task_id, settings, here, "strata resume")
        task = attendance.run() if agents is None else _on_agents(agents, attendance, here.endpoints, task_id)
    attendance.end(task)


def _wait_until_stopped(tasks: TasksClient, task_id: str, here: TaskCluster) -> None:
    """Its ranks save and leave first. Ctrl-C ends the waiting; the coordinator then says that it is stopping."""
    while tasks.get(task_id).status is TaskStatus.STOPPING and here.stops.count == 0:
        here.pause()


def workers_of(settings: Settings, task_id: str) -> int:
    """How many ranks a task of this folder has; a cluster that is started for it needs as many slots."""
    if answers(find_endpoints(settings)):
        return 0
    for task in read_state(settings.data_dir)["tasks"]:
        if task["task_id"] == task_id:
            return int(task["spec"]["worker_count"])
    raise UnknownTask(f"no task {task_id!r} is known in {settings.data_dir}")


def _known(launcher: str) -> str:
    """Refuses an unknown launcher before a cluster is started for it."""
    if launcher not in LAUNCHERS:
        raise InvalidArgument(f"launcher {launcher!r} is unknown", hint=f"Known: {', '.join(LAUNCHERS)}.")
    return launcher


def _let_go(tasks: TasksClient, task_id: str, agents: Fleet | None, endpoints: Endpoints) -> None:
    """Leaves a task to the cluster, and the agents that are started for it: they end with it."""
    if agents is not None:
        try:
            whisper(f"its agents end with it: {agents.start(endpoints, task_id)}")
        except StrataError as error:
            tasks.stop(task_id, error.message)
            raise
    sys.stdout.write(f"{task_id}\n")
    whisper(f"`strata logs --task {task_id} --follow` follows it, `strata tasks stop {task_id}` ends it")


def _on_agents(agents: Fleet, attendance: Attendance, endpoints: Endpoints, task_id: str) -> TaskView:
    """Runs the task on agents that are started for it and stopped afterwards."""
    try:
        agents.start(endpoints, task_id)
        return attendance.run(agents.look)
    except StrataError as error:
        attendance.stop(error.message)
        raise
    finally:
        whisper("stopping its agents")
        agents.stop()
