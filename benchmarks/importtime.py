"""What `import strata` costs a training process, beside a peer's SDK and the libraries that ours cannot do without."""

from benchmarks.harness import SCRIPTS, Benchmark, Case, Script, Target, floor, ours, peer

__all__ = ["BENCHMARK"]


def _import(*modules: str, requires: tuple[str, ...] = ()) -> Script:
    return Script(SCRIPTS / "import_modules.py", args=modules, requires=requires)


WANDB = _import("wandb", requires=("wandb==0.31.0",))

BENCHMARK = Benchmark(
    name="importtime",
    packages=("grpcio", "numpy", "protobuf"),
    cases=(
        Case(
            name="import the SDK in a fresh interpreter",
            variants=(
                ours(_import("strata")),
                peer("wandb", WANDB),
                floor("import grpc and numpy", _import("grpc", "numpy")),
            ),
            targets=(
                Target(metric="wall_s", versus=None, at_most=0.4),
                Target(metric="wall_s", versus="wandb", at_most=1.0),
            ),
            repeats=11,
            warmups=2,
        ),
        Case(
            name="import the SDK and use every public name",
            variants=(
                ours(_import("strata:all")),
                peer("wandb", WANDB, label="wandb, import alone (peer)"),
                floor("import grpc and numpy", _import("grpc", "numpy")),
            ),
            targets=(Target(metric="wall_s", versus="wandb", at_most=1.0),),
            repeats=11,
            warmups=2,
        ),
    ),
)
