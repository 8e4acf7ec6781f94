"""The Prometheus page reads the same records as everybody, and the operators' files ask for what is on it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from strata.clock import ManualClock
from strata.cluster import events as ev
from strata.observatory.answers.status import Status
from strata.observatory.background.setaside import SetAside
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.cluster.vitals import WorkerVitals
from strata.observatory.http.exposition import Exposition
from strata.observatory.ingest.intake import IntakeCounts
from strata.observatory.stream.broadcaster import Broadcaster
from tests.support.answers import partly

_DEPLOY = Path(__file__).resolve().parents[4] / "deploy"
_RULES = _DEPLOY / "prometheus" / "alerts.yaml"


def agent(name: str) -> ev.AgentJoined:
    return ev.AgentJoined(
        agent_id=name, incarnation="i", hostname=name, address=name, slots=2, gpu_count=8, memory_bytes=0, version="1",
        at=1.0,
    )  # fmt: skip


def task(name: str) -> ev.TaskSubmitted:
    return ev.TaskSubmitted(
        task_id=name, request_id="", name=f"job-{name}", type="training", dataset_id="", worker_count=2,
        config_json="{}", entrypoint=(), env={}, launcher="local", max_restarts=3, working_dir="", at=1.0,
        gpus_per_worker=3,
    )  # fmt: skip


def changed(name: str, status: str) -> ev.TaskChanged:
    return ev.TaskChanged(
        task_id=name, status=status, attempt=3, reason="", placement=("g", "g"), failures=1, preemptions=4, at=2.0
    )


def saved(step: int) -> ev.CheckpointCommitted:
    return ev.CheckpointCommitted(
        checkpoint_id=f"c{step}", task_id="t", attempt="", worker_id="w", step=step, epoch=0, storage_path=f"/{step}",
        size_bytes=4, type=0, duration_s=2.0, metadata={}, at=100.0 + step,
    )  # fmt: skip


def joined(rank: int) -> ev.WorkerJoined:
    return ev.WorkerJoined(
        worker_id=f"t-{rank}", task_id="t", incarnation="i", rank=rank, generation=rank + 1, hostname="g",
        port=1, gpu_count=0, memory_bytes=3, agent_id="g", metadata={}, at=100.5,
    )  # fmt: skip


def page(*events: ev.Event, vitals: dict[str, WorkerVitals] | None = None, goodput: float = 0.0) -> str:
    clock = ManualClock()
    stream = Broadcaster(lambda _: b"{}", clock)
    published = PublishedCluster(stream, clock, lambda: partly(Status), SetAside(clock, lambda _: None))
    for event in events:
        published.followed.apply(event)
    published.set_vitals(vitals or {}, [], {})
    return Exposition(published, stream, IntakeCounts(), dict, lambda: {"t": goodput, "gone": 1.0}).text().decode()


@pytest.fixture(scope="module")
def full() -> str:
    def training(step: int) -> WorkerVitals:
        return WorkerVitals(state="training", member_state="ready", current_step=step)

    return page(
        agent("g"), task("t"), changed("t", "running"), task("over"), changed("over", "completed"),
        joined(0), joined(1), saved(5), saved(9), vitals={"t-0": training(11), "t-1": training(12)}, goodput=87.5,
    )  # fmt: skip


def test_agents_by_state() -> None:
    text = page(agent("g"), agent("h"), ev.AgentLost(agent_id="h", reason="no beat", left=False, at=2.0))
    assert 'strata_agents{state="ready"} 1.0' in text
    assert 'strata_agents{state="lost"} 1.0' in text
    assert re.findall(r"strata_agent_slots{(.*)} (.*)", text) == [('agent="g",host="g"', "2.0")]


def test_what_hosts_offer_and_what_is_held_of_it(full: str) -> None:
    found = dict(re.findall(r'strata_agent_(\w+){agent="g",host="g"} (\S+)', full))
    assert found == {"slots": "2.0", "slots_held": "2.0", "gpus": "8.0", "gpus_held": "6.0"}


def test_a_task_that_goes_on_is_told_of(full: str) -> None:
    found = dict(re.findall(r'strata_task_(\w+){name="job-t",task="t"} (\S+)', full))
    assert found == {
        "ranks": "2.0",
        "attempt": "3.0",
        "failures_total": "1.0",
        "losses_total": "4.0",
        "step": "12.0",
        "checkpoint_step": "9.0",
        "checkpoint_timestamp_seconds": "109.0",
        "goodput_ratio": "0.875",
    }
    assert "job-over" not in full


@pytest.mark.parametrize("path", [_RULES, _DEPLOY / "grafana" / "strata.json"], ids=lambda path: path.name)
def test_the_operators_files_ask_for_what_is_there(full: str, path: Path) -> None:
    asked = set(re.findall(r"strata_\w+", path.read_text()))
    there = {sample.name for family in text_string_to_metric_families(full) for sample in family.samples}
    declared = {
        name for family in text_string_to_metric_families(full) for name in (family.name, f"{family.name}_total")
    }
    assert asked
    assert asked <= there | declared


def test_promtool_accepts_the_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed; `make promtool` installs it")
    checked = subprocess.run([promtool, "check", "rules", str(_RULES)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
