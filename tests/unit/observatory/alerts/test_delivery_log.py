"""What is kept of deliveries: all of it comes back, no more than its bound, and what cannot be read takes nothing with
it."""

import json
from pathlib import Path

from strata.clock import SystemClock
from strata.observatory.alerts.delivery_log import DeliveryLog
from strata.observatory.answers.alerts import Alert
from strata.observatory.answers.rules import Delivery
from strata.observatory.background.setaside import SetAside
from strata.observatory.records.fill import fill
from strata.observatory.records.finding import Finding


def _log(folder: Path) -> tuple[DeliveryLog, SetAside]:
    aside = SetAside(SystemClock(), lambda _: None)
    log = DeliveryLog(folder / "alert-deliveries.json", aside)
    log.load(0.0)
    return log, aside


def _alert(number: int) -> Alert:
    about = dict.fromkeys(("run_id", "task_id", "worker_id", "rank", "step"))
    return fill(Alert, id=f"a{number}", timestamp_ms=number, kind="k", severity="info", message="\ud800 odd", **about)


def _finding(rule: str, kind: str = "rule_threshold") -> Finding:
    return Finding(kind=kind, severity="info", message="m", subject=f"{rule}/r1")


def _sent(target: str = "hook") -> Delivery:
    return Delivery(target=target, state="sent", at_ms=1, problem=None)


def test_all_of_it_comes_back(tmp_path: Path) -> None:
    log, _ = _log(tmp_path)
    assert not log.changed
    post = log.post_of("hook")
    post.waiting.append(_alert(1))
    post.sent, post.quieted, post.problem, post.last_at = 3, 2, "busy", 1.5
    log.note(_alert(1), _sent())
    log.note(_alert(1), _sent("mail"))
    log.note_fired("high", _alert(1))
    log.note_fired("deleted", _alert(1))
    log.note_since("high", {"r1": 7.5})
    log.note_since("never fired", {"r1": 7.5})
    log.take_new([_finding("high"), _finding("deleted"), _finding("high", kind="hang")], 0.0)
    log.forget_rules({"high"})
    assert log.changed
    log.write(log.plain())
    assert not log.changed
    again, aside = _log(tmp_path)
    assert (again.posts, again.told, again.fired) == (log.posts, log.told, log.fired)
    assert (again.found, again.since) == (log.found, log.since)
    assert list(again.fired) == ["high"]
    assert again.since == {"high": {"r1": 7.5}}
    assert list(again.found) == [("rule_threshold", "high/r1"), ("hang", "high/r1")]
    assert aside.view() == []
    assert (tmp_path / "alert-deliveries.json").stat().st_mode & 0o077 == 0


def test_no_more_than_a_thousand_alerts_are_remembered(tmp_path: Path) -> None:
    log, _ = _log(tmp_path)
    for number in range(1_500):
        log.note(_alert(number), _sent())
    assert list(log.told) == [f"a{number}" for number in range(500, 1_500)]
    assert log.of_alert("a0") == []


def test_what_cannot_be_read_is_set_aside_piece_by_piece(tmp_path: Path) -> None:
    log, _ = _log(tmp_path)
    for name in ("hook", "mail"):
        log.post_of(name).sent = 1
        log.note(_alert(len(name)), _sent(name))
        log.note_fired(name, _alert(1))
    kept = log.plain()
    del kept["posts"]["mail"]["sent"]
    kept["told"]["a4"] = [None]
    kept["fired"]["mail"] = 7
    kept["since"] = {"mail": {"r1": None}, "hook": {"r1": 1}}
    kept["found"] = {"k": 7, "hang": ["s"]}
    kept["of a newer release"] = []
    log.write(kept)
    again, aside = _log(tmp_path)
    assert (list(again.posts), list(again.told), list(again.fired)) == (["hook"], [], ["hook"])
    assert (again.since, list(again.found)) == ({"hook": {"r1": 1.0}}, [("hang", "s")])
    assert [(part.part, part.count) for part in aside.view()] == [("alert deliveries", 5)]
    for text in ("[", "[]", "7", json.dumps({"posts": [1]}), ""):
        (tmp_path / "alert-deliveries.json").write_text(text)
        empty, aside = _log(tmp_path)
        assert (empty.posts, empty.told, empty.fired) == ({}, {}, {})
