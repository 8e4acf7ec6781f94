"""A coordinator and a fleet of up to 1,250 hosts with eight ranks each, on real connections: from the first agent to
the end of a task of 10,000 ranks. Everything takes the product's road but the processes of ranks, which nobody starts:
`scripts/fleet_load.py` plays the agents, and does at once what they are told.

Client and server share this machine's cores. `block_s` is the longest time for which the coordinator's loop did not
answer a ping, of a process of its own: while all ranks of the task ended, and while gangs died and started anew.
"""

from collections.abc import Sequence

from benchmarks.harness import SCRIPTS, Benchmark, Case, Script, Target, ours
from benchmarks.picture import scaling
from benchmarks.results import CaseResult

__all__ = ["BENCHMARK"]

_HOSTS = {104: 13, 1_000: 125, 10_000: 1_250}
_LINES = {
    "barrier, p50": "barrier_p50_s",
    "barrier, p99": "barrier_p99_s",
    "a death told, p99": "death_p99_s",
    "checkpoint commit": "commit_s",
    "coordinator restart": "restart_s",
    "end of the task": "end_s",
}


def _picture(cases: Sequence[CaseResult]) -> str:
    lines = {
        name: [
            (float(ranks), sorted(values)[len(values) // 2])
            for ranks, case in zip(_HOSTS, cases, strict=True)
            if (values := case.variants[0].values(metric))
        ]
        for name, metric in _LINES.items()
    }
    return scaling("One coordinator, 100 to 10,000 ranks", "ranks, eight behind each agent", "time", lines)


def _case(ranks: int, hosts: int, *targets: Target) -> Case:
    script = Script(SCRIPTS / "fleet_load.py", args=(str(hosts),))
    return Case(
        name=f"a task of {ranks:,} ranks behind {hosts:,} agents, from its start to its end",
        variants=(ours(script),),
        targets=targets,
        repeats=3,
        warmups=0,
    )


BENCHMARK = Benchmark(
    name="fleet",
    packages=("grpcio", "protobuf", "uvloop"),
    cases=(
        _case(104, _HOSTS[104]),
        _case(1_000, _HOSTS[1_000]),
        _case(
            10_000,
            _HOSTS[10_000],
            Target(
                metric="barrier_p99_s",
                versus=None,
                at_most=0.100,
                work="barrier of 10,000 ranks behind 1,250 agents, p99",
                profile="a look at all ranks and passes of Python's collector stood in slow rounds, and do no longer "
                "(ADR 44). Of 68 ms of the coordinator's CPU in a round, reading takes 19, meeting and recording 13, "
                "writing 11, beats included; the load, which plays all hosts, takes 42 ms of the other core.",
            ),
            Target(
                metric="death_p99_s",
                versus=None,
                at_most=0.250,
                work="one death told to 10,000 ranks, p99",
                profile="a host is told in one frame, and its agent passes it on to each rank (ADR 40).",
            ),
            Target(
                metric="restart_s", versus=None, at_most=5.0, work="coordinator restart with 10,000 ranks, all attached"
            ),
            Target(
                metric="end_block_s",
                versus=None,
                at_most=0.050,
                work="end of a 10,000-rank task, longest block",
                profile="without sockets the longest turn of the loop is 12 ms (ranks.md); what a ping waits beside "
                "that is the reading of what all hosts say in one turn, and a processor.",
            ),
        ),
    ),
    picture=_picture,
)
