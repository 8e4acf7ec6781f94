"""The environment variables that Strata reads: those of its settings, those that agents set for ranks."""

from collections.abc import Mapping

from strata.config.settings import SETTINGS
from strata.errors import InvalidConfig

__all__ = ["RANK_VARIABLES", "refuse_unknown", "variables"]

# Set by agents for the ranks they start, and read by the SDK, not here.
RANK_VARIABLES: Mapping[str, str] = {
    "STRATA_TASK_ID": "the task",
    "STRATA_ATTEMPT": "which attempt of the task this is, from 1",
    "STRATA_RUN_ID": "the run that takes the metrics; the task's id",
    "STRATA_WORKER_ID": "the worker's name in the cluster",
    "STRATA_INCARNATION": "the id of this process start; the coordinator refuses any other",
    "STRATA_RANK": "the rank; also in `RANK`",
    "STRATA_WORLD_SIZE": "how many ranks the task has now; also in `WORLD_SIZE`",
    "STRATA_WORKER_COUNT": "how many ranks the task has at most; the global batch is `batch_size` times that",
    "STRATA_LOCAL_RANK": "the number of the rank on its host; also in `LOCAL_RANK`",
    "STRATA_GPUS": "the cards that this rank alone holds, by `--gpus-per-worker`, as `CUDA_VISIBLE_DEVICES` names them",
    "STRATA_CONFIG_JSON": "the task's `config`",
    "STRATA_FORK_JSON": "where a forked task begins (docs/forking.md)",
    "STRATA_DATASET_ID": "the task's dataset, if it has one",
    "STRATA_DATASET_JSON": "where that dataset lies, its format, order and seed",
    "STRATA_GANG_PORT": "the port on which the ranks of the built-in trainer meet; frameworks use `MASTER_PORT`",
    "STRATA_WORLD_NUMBER": "how many ranks had been replaced in place in this attempt when the process was started",
    "STRATA_RANK_SECRET": "proves to coordinator and observatory that the process belongs to its task",
    "STRATA_CHECKPOINTS_APART": "the hosts of the task, where they do not share the folder that checkpoints go to",
    "STRATA_SPARES": "how many warm interpreters each host keeps for the task, if any",
    "STRATA_AGENT_ID": "the agent that started the rank",
    "STRATA_AGENT_SOCKET": "the socket at which that agent takes what the rank says to the coordinator",
    "STRATA_CA": "of an agent that a launcher started: the cluster's CA (PEM) itself",
    "STRATA_AGENT_NUMBER": "of an agent: its number among those that its launcher started, from 0",
    "STRATA_TELEMETRY_ADDR": "host:port of the observatory that takes the metrics; a script may set it, too",
    "STRATA_SUPERVISOR_PID": "of a child of `strata up`: the process whose end is its own",
    "STRATA_FAULT": "of a test: the named place in a checkpoint's save at which the process dies, fails or hangs",
}
# Read by tests, benchmarks and the build of this repository.
_TOOL_VARIABLES = frozenset(
    {
        "STRATA_BENCH_PICTURES",
        "STRATA_BENCH_REPORT",
        "STRATA_BENCH_SOAK_S",
        "STRATA_BENCH_VENVS",
        "STRATA_CHROMIUM",
        "STRATA_HTTP",
        "STRATA_REQUIRE_WEB",
    }
)
# Settings that are also read without the prefix, as other tools name them.
_PLAIN = {
    "coordinator_addr", "heartbeat_timeout", "poll_interval_sec", "storage_backend", "checkpoint_bucket",
    "aws_region", "aws_access_key_id", "aws_secret_access_key", "aws_endpoint_url",
    "ch_host", "ch_port", "ch_protocol", "ch_database", "ch_user", "ch_password",
    "ch_cluster", "ch_ca_file", "ch_cert", "ch_key",
}  # fmt: skip


def variables(field: str) -> list[str]:
    """The environment variables a field is read from, the one that wins first."""
    also = ("RUST_LOG",) if field == "log" else (field.upper(),) if field in _PLAIN else ()
    return [f"STRATA_{field.upper()}", *also]


def refuse_unknown(given: Mapping[str, str]) -> None:
    """Raises InvalidConfig for a variable that has our prefix and is none of ours."""
    known = {name for field in SETTINGS for name in variables(field)}
    known |= RANK_VARIABLES.keys() | _TOOL_VARIABLES
    for name in sorted(given):
        if name.startswith("STRATA_") and name not in known:
            import difflib

            close = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {close[0]}?" if close else "Unset it; docs/reference/environment.md lists all."
            raise InvalidConfig(f"{name} is not a setting of Strata", hint=hint)
