"""`strata logs` where there is no line: a task or worker that nobody knows is an error, anything else a sentence."""

import time
from pathlib import Path

from strata.client.telemetry import send_batches
from strata.protocol.generated import telemetry_pb2 as tm
from strata.trust.access import Access
from tests.support.cluster import strata
from tests.support.nodes import Nodes
from tests.support.waiting import eventually


def test_why_there_is_no_line_is_said(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("STRATA_LOG=error\n", encoding="utf-8")  # the coordinator would tell of the task
    with Nodes(tmp_path) as nodes:
        nodes.start("coordinator", "observatory")
        folder = ("--data-dir", str(nodes.data_dir))
        task = nodes.submit(name="waits", worker_count=9, entrypoint=("true",))
        eventually("the task", lambda: task in strata("tasks", *folder).stdout)
        for flags in (("--task", "nosuch"), ("--task", "nosuch", "--json"), ("--task", "nosuch", "--follow")):
            done = strata("logs", *flags, *folder)
            assert (done.returncode, done.stdout) == (1, "")
            assert "no task 'nosuch' is known. List what there is with `strata tasks`." in done.stderr
        done = strata("logs", "--worker", "nosuch", *folder)
        assert (done.returncode, done.stdout) == (1, "")
        assert "no worker 'nosuch' is known" in done.stderr
        done = strata("logs", "--task", task, *folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", f"No lines of task {task} yet.\n")
        assert strata("logs", "--task", task, "--json", *folder).stdout == "[]\n"
        line = tm.LogLine(event_time_ms=time.time_ns() // 1_000_000, level="info", message="it begins", task_id=task)
        send_batches([tm.Batch(batch_id="b-1", logs=[line])], nodes.telemetry, Access())
        eventually("its line", lambda: strata("logs", "--task", task, *folder).stdout.endswith(" it begins\n"))
        for filters in (("--search", "\udcff"), ("--level", "error")):
            done = strata("logs", "--task", task, *filters, *folder)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "No line matches.\n")
