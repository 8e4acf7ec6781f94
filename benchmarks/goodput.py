"""How much of a training job is left when its ranks are killed with -9 again and again: Strata in place and as a gang,
torchrun, torchft and Ray Train train the same job, one after another, under the same kills.

The job (scripts/goodput_job.py): torch on CPU with gloo, 4 ranks, 48 MB of parameters, steps of about 50 ms. The ranks
share the cores of one machine, so most of a step is a fixed sleep in place of a GPU's work, and a tenth of the
parameters is trained; sum of gradients, optimizer, saves and transfers of the state are real. Systems that save
checkpoints do so every 100 steps. Strata keeps warm spares: two in place, four for the gang; the others have no such
thing. torchft is set up as its own example is, with the lighthouse's 5 s until a silent replica is taken for dead.

In each of three windows of 60 s one random rank is killed per 60, 30 and 10 s, at seeded moments that all systems share
(in the first half of each interval). If that rank is not alive the next one that is dies instead; if none is, the kill
is a missed one. Between the windows the job is left alone.

`step_s` is the undisturbed step: seconds per step in the four pauses of 20 s around the windows. A machine is not
equally fast all the time, so `goodput_60`, `_30` and `_10` hold the pace of useful steps in a window against that of
the pauses before and after it. `wander` says how far the paces of the four pauses lie apart, as a share of their mean:
differences of goodput below it mean nothing. Useful are steps that are in the state when the window ends: steps that a
kill undid and that were done again count once, and steps that are undone and not yet done again do not count. A step of
torchft that only three replicas made counts as a whole one; what is missing in it is in `lost`. `next_step` runs from
a kill to the end of the first step that began after it, over all kills of all windows (nearest rank). `kill_cost_s` is
what is missing in the five seconds after a kill at the pace of the five before it, the mean of all kills, for systems
that need less than that to go on: so close in time the machine is the same. `redone_steps` is how often a step was
finished that had been finished before.

`lost` and `doubled` compare the samples in the final state with an uninterrupted run: every rank puts its step number
into the sum of gradients, and writes the sum it got back into a ledger with each step. The unit is one rank's batch of
one step. The state itself adds these numbers up, and must agree with the ledger.
"""

import sys
from collections.abc import Sequence

from benchmarks.harness import SCRIPTS, Benchmark, Case, Script, Target, Variant, ours, peer
from benchmarks.picture import curves
from benchmarks.results import CaseResult

__all__ = ["BENCHMARK"]

_RATES = (60, 30, 10)  # a kill every so many seconds
_TORCH = ("torch==2.13.0", "numpy==2.4.6", "psutil==7.2.2")
# What a rank imports of Strata, in the versions of constraints.txt; the code is that of this checkout. torchrun's ranks
# import nothing of it, but share the virtualenv.
_SDK = (
    "grpcio==1.85.1",
    "hpack==4.2.0",
    "protobuf==7.36.2",
    "pydantic-settings==2.16.2",
    "python-dotenv==1.2.4",
    "rich==15.0.0",
    "typer==0.29.0",
    "typing-extensions==4.16.0",
    "xxhash==4.1.0",
)


def _drive(system: str, *requires: str) -> Script:
    args = (system, "--server", sys.executable, "--rates", ",".join(map(str, _RATES)))
    return Script(SCRIPTS / "goodput_drive.py", requires=(*_TORCH, *requires), args=args, timeout_s=900.0)


_VARIANTS: tuple[Variant, ...] = (
    ours(_drive("in_place", *_SDK), name="in_place", label="Strata, in place"),
    ours(_drive("gang", *_SDK), name="gang", label="Strata, gang restart"),
    peer("torchrun", _drive("torchrun", *_SDK), label="torchrun --max-restarts, torch.save (peer)"),
    peer("torchft", _drive("torchft", "torchft-nightly==2026.10.26")),
    peer("ray", _drive("ray", "ray[train]==2.60.0"), label="Ray Train, max_failures (peer)"),
)


def _picture(cases: Sequence[CaseResult]) -> str:
    lines = {}
    for variant in cases[0].variants:
        values = {rate: variant.values(f"goodput_{rate}") for rate in _RATES}
        if all(values.values()):
            curve = [(3600 / rate, sum(found) / len(found)) for rate, found in values.items()]
            lines[variant.label.partition(" --")[0].removesuffix(" (peer)")] = [(0.0, 1.0), *curve]
    ticks = [0, *(3600 / rate for rate in _RATES)]
    return curves("Goodput under kill -9 of single ranks", "kills per hour", "goodput", lines, x_ticks=ticks)


BENCHMARK = Benchmark(
    name="goodput",
    packages=("grpcio", "protobuf", "uvloop", "numpy"),
    cases=(
        Case(
            name="four torch ranks, one of them killed every 60, 30 and 10 s",
            variants=_VARIANTS,
            targets=(
                Target(metric="next_step_p50_s", of="in_place", versus=None, at_most=0.5),
                Target(metric="next_step_p95_s", of="in_place", versus=None, at_most=1.0),
                Target(metric="goodput_60", of="in_place", versus=None, at_least=0.99),
                Target(metric="kill_cost_s", of="in_place", versus=None, at_most=0.6),  # 1 % of a minute
                Target(metric="goodput_10", of="in_place", versus=None, at_least=0.95),
                Target(metric="lost", of="in_place", versus=None, at_most=0),
                Target(metric="doubled", of="in_place", versus=None, at_most=0),
                Target(metric="lost", of="gang", versus=None, at_most=0),
                Target(metric="doubled", of="gang", versus=None, at_most=0),
            ),
            repeats=1,
            warmups=0,
        ),
    ),
    picture=_picture,
)
