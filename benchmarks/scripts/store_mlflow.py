"""MLflow's SQLite store: a thousand points per call, its limit (point by point it is far slower), read back by the
query behind its page, which samples by step."""

import os
import time
from pathlib import Path

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

from mlflow.entities import Metric
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.tracking import MlflowClient

from benchmarks.scripts.store_task import measure_store

AT_ONCE = 1_000


def write(folder: Path, points: int) -> float:
    client = MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db")
    run = client.create_run(client.create_experiment("bench", artifact_location=f"{folder}/artifacts"))
    (folder / "run_id").write_text(run.info.run_id)
    start = time.perf_counter()
    for first in range(0, points, AT_ONCE):
        now = time.time_ns() // 1_000_000
        steps = range(first, min(points, first + AT_ONCE))
        client.log_batch(run.info.run_id, metrics=[Metric("loss", step * 0.5, now, step) for step in steps])
    return time.perf_counter() - start


def read(folder: Path) -> dict[str, float]:
    store = SqlAlchemyStore(f"sqlite:///{folder}/mlflow.db", f"{folder}/artifacts")
    run_id = (folder / "run_id").read_text()
    start = time.perf_counter()
    found = store.get_metric_history_bulk_interval(
        run_ids=[run_id], metric_key="loss", max_results=2_000, start_step=None, end_step=None
    )
    return {"read_s": time.perf_counter() - start, "read_points": len(found)}


if __name__ == "__main__":
    measure_store("mlflow", write, read)
