"""What `run.log` costs the training thread, beside wandb (offline) and tensorboardX, each with its default settings."""

from benchmarks.harness import SCRIPTS, Benchmark, Case, Script, Target, ours, peer

__all__ = ["BENCHMARK"]

BENCHMARK = Benchmark(
    name="run_log",
    packages=("grpcio", "protobuf"),
    cases=(
        Case(
            name="50,000 calls with two metrics each, no server",
            variants=(
                ours(Script(SCRIPTS / "strata_log.py")),
                peer("wandb", Script(SCRIPTS / "wandb_log.py", requires=("wandb==0.31.0",))),
                peer(
                    "tensorboardX",
                    Script(SCRIPTS / "tensorboardx_log.py", requires=("tensorboardX==2.6.5", "setuptools<81")),
                ),
            ),
            targets=(
                Target(metric="us_per_call", versus=None, at_most=5.0),
                Target(metric="dropped", versus=None, at_most=0.0),
                Target(metric="us_per_call", versus="wandb", at_most=0.5),
            ),
            repeats=5,
            warmups=1,
        ),
    ),
)
