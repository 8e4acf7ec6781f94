"""Alert rules of users against a real observatory: found in the points that the test sends, told to a webhook, in
Slack's form and by mail, never twice; targets that refuse or hang hold up no other, and no secret comes back.
"""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.support.receivers import SECRET, Mailbox, Receiver, Trickler


@pytest.fixture(scope="module")
def client(shared_observatory: ObservatoryProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=shared_observatory.http, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


def put(client: httpx.Client, path: str, **body: Any) -> httpx.Response:
    answer = client.put(f"/api/alerts/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer


def log(client: httpx.Client, run: str, *values: float | str, metric: str = "loss", first: int = 0) -> None:
    points = [{"metric": metric, "step": first + place, "value": value} for place, value in enumerate(values)]
    assert client.post(f"/api/runs/{run}/points", json={"points": points}).status_code == 200


def test_rules_find_what_was_sent_and_tell_it_once(client: httpx.Client, receiver: Receiver) -> None:
    mailbox = Mailbox()
    put(client, "targets/hook", kind="webhook", url=receiver.url("/ok"))
    put(client, "targets/chat", kind="slack", url=receiver.url("/chat"))
    mail = {"host": "127.0.0.1", "port": mailbox.port, "tls": False, "sender": "s@here", "recipients": ["me@here"]}
    put(client, "targets/mail", kind="email", **mail)
    named = ["hook", "chat", "mail"]
    put(client, "rules/high", kind="threshold", metric="loss", value=4, filter="id:bad", targets=named)
    put(client, "rules/nan", kind="bad_value", metric="loss", filter="id:odd", targets=["hook"])
    put(client, "rules/off", kind="divergence", metric="loss", baseline="base", filter="id:bad", targets=["hook"])
    put(client, "rules/low", kind="threshold", metric="loss", value=1, filter="id:bad", enabled=False, targets=["hook"])
    log(client, "base", 3.0, 2.0, 1.0)
    log(client, "bad", 3.0, 9.0)
    log(client, "odd", 1.0, "nan", 1.0)
    log(client, "well", 9.0)
    told = wait_until(lambda: len(receiver.told("/ok")) >= 3 and receiver.told("/ok"), "three alerts")
    by_kind = {body["alert"]["kind"]: body["alert"] for body in told}
    assert by_kind.keys() == {"rule_threshold", "rule_bad_value", "rule_divergence"}
    assert by_kind["rule_threshold"]["message"] == "high: loss is 9, above 4 (run bad)"
    assert (by_kind["rule_threshold"]["run_id"], by_kind["rule_threshold"]["step"]) == ("bad", 1), "its incident trail"
    assert by_kind["rule_bad_value"]["run_id"] == "odd"
    assert by_kind["rule_divergence"]["message"].startswith("off: loss is 9, above run base at that step (2) by more")
    wait_until(lambda: mailbox.mails, "the mail")
    wait_until(lambda: receiver.told("/chat"), "the chat")
    assert receiver.told("/chat") == [{"text": "[warning] high: loss is 9, above 4 (run bad)"}]
    assert "Subject: [Strata, warning] high: loss is 9, above 4 (run bad)" in mailbox.mails[0]
    log(client, "bad", 9.5, first=2)
    found = wait_until(lambda: [a for a in client.get("/api/alerts").json() if a["kind"] == "rule_threshold"], "it")
    assert len(found) == 1, "the same rule for the same run is one alert"
    assert len(mailbox.mails) == 1
    shown = {one["name"]: one for one in client.get("/api/alerts/rules").json()["rules"]}
    assert {name: shown[name]["state"] for name in ("high", "nan", "off", "low")} == {
        "high": "firing",
        "nan": "firing",
        "off": "firing",
        "low": "off",
    }
    assert (shown["high"]["num_firing"], shown["high"]["last_alert"]) == (1, found[0])
    wait_until(lambda: delivered(client, "high") == dict.fromkeys(named, ("sent", None)), "what became of it")
    assert shown["low"]["last_alert"] is None


def delivered(client: httpx.Client, rule: str) -> dict[str, tuple[str, str | None]]:
    rules = client.get("/api/alerts/rules").json()["rules"]
    found = next(one for one in rules if one["name"] == rule)["deliveries"]
    return {one["target"]: (one["state"], one["problem"]) for one in found}


def test_a_rule_that_must_last_waits_and_is_quiet_again_when_it_is_over(client: httpx.Client) -> None:
    put(client, "rules/lasting", kind="threshold", metric="lag", value=4, for_s=3600, filter="id:slow")

    def state() -> str:
        found = next(one for one in client.get("/api/alerts/rules").json()["rules"] if one["name"] == "lasting")
        return str(found["state"])

    log(client, "slow", 9.0, metric="lag")
    wait_until(lambda: state() == "waiting", "it holds, but not for an hour")
    log(client, "slow", 1.0, metric="lag", first=1)
    wait_until(lambda: state() == "quiet", "it is over")
    assert client.delete("/api/alerts/rules/lasting").status_code == 200


def test_a_new_rule_with_the_name_of_a_deleted_one_is_told(client: httpx.Client) -> None:
    body = {"kind": "threshold", "metric": "heat", "value": 4, "filter": "id:hot"}

    def told(name: str) -> int:
        return sum(one["message"].startswith(f"{name}: ") for one in client.get("/api/alerts").json())

    log(client, "hot", 9.0, metric="heat")
    put(client, "rules/again", **body)
    wait_until(lambda: told("again") == 1, "its alert")
    assert client.delete("/api/alerts/rules/again").status_code == 200
    put(client, "rules/between", **body)
    wait_until(lambda: told("between") == 1, "a look without the deleted one")
    put(client, "rules/again", **body)
    wait_until(lambda: told("again") == 2, "the alert of the new one")


def test_a_target_that_refuses_or_moves_is_counted_and_holds_up_no_other(
    client: httpx.Client, receiver: Receiver
) -> None:
    for name in ("broken", "moved", "fine"):
        put(client, f"targets/{name}", kind="webhook", url=receiver.url("/ok2" if name == "fine" else f"/{name}"))
    put(client, "targets/gone", kind="webhook", url="http://127.0.0.1:1/")
    put(client, "rules/each", kind="threshold", metric="up", value=1, targets=["broken", "moved", "gone", "fine"])
    log(client, "again", 2.0, metric="up")
    wait_until(lambda: receiver.told("/ok2"), "the one that works")

    def counted() -> dict[str, dict[str, Any]] | None:
        found = {one["name"]: one for one in client.get("/api/alerts/rules").json()["targets"]}
        return found if all(found[name]["failed"] for name in ("broken", "moved", "gone")) else None

    targets = wait_until(counted, "three that failed")
    assert targets["fine"]["sent"] == 1
    assert targets["broken"]["problem"] == "target broken answered 500"
    assert targets["moved"]["problem"] == "target moved answered 302"
    assert delivered(client, "each")["broken"] == ("failed", "target broken answered 500")
    assert not receiver.told("/ok?moved"), "no redirect is followed"
    tested = client.post("/api/alerts/targets/broken/test")
    assert (tested.status_code, "answered 500" in tested.text) == (503, True)
    assert client.post("/api/alerts/targets/fine/test").status_code == 200


@pytest.mark.slow
def test_a_target_that_trickles_its_answer_fails_like_any_other(client: httpx.Client) -> None:
    with Trickler(b"HTTP/1.1 200 OK\r\nX: ") as trickler:
        put(client, "targets/slow", kind="webhook", url=f"http://127.0.0.1:{trickler.port}/")
        put(client, "rules/slow", kind="threshold", metric="slow", value=1, targets=["slow"])
        log(client, "slow", 2.0, metric="slow")
        problem = "target slow did not answer within 10 s"
        wait_until(lambda: delivered(client, "slow") == {"slow": ("failed", problem)}, "three tries", 120)
        shown = {one["name"]: one for one in client.get("/api/alerts/rules").json()["targets"]}
        assert (shown["slow"]["sent"], shown["slow"]["failed"], shown["slow"]["problem"]) == (0, 1, problem)


def test_no_secret_comes_back_and_odd_rules_are_refused(
    client: httpx.Client, shared_observatory: ObservatoryProcess, receiver: Receiver
) -> None:
    mail = {"kind": "email", "host": "127.0.0.1", "user": "u", "sender": "s@here", "recipients": ["me@here"]}
    put(client, "targets/kept", password=SECRET, **mail)
    put(client, "targets/kept", **mail, all_alerts=True)
    put(client, "targets/hidden", kind="webhook", url=receiver.url("/ok"), quiet_from="22:00", quiet_to="07:00")
    shown = client.get("/api/alerts/rules").text
    assert SECRET not in shown
    kept = next(one for one in json.loads(shown)["targets"] if one["name"] == "kept")
    assert (kept["has_password"], kept["all_alerts"], kept["place"]) == (True, True, "127.0.0.1:587")
    moved = client.put("/api/alerts/targets/kept", json={**mail, "host": "evil.example"})
    assert (moved.status_code, "another server needs its own password" in moved.text) == (400, True)
    file = Path(shared_observatory.data_dir) / "alert-rules.json"
    assert file.stat().st_mode & 0o077 == 0
    hook = {"kind": "webhook", "url": "http://x/"}
    post = {"kind": "email", "host": "h", "sender": "s@h"}
    for field, path, body in (
        ("value", "rules/x", {"kind": "threshold", "metric": "loss"}),
        ("value", "rules/x", {"kind": "threshold", "metric": "loss", "value": "high"}),
        ("metric", "rules/x", {"kind": "threshold", "value": 1}),
        ("for_s", "rules/x", {"kind": "no_progress"}),
        ("for_s", "rules/x", {"kind": "no_progress", "for_s": 2**70}),
        ("filter", "rules/x", {"kind": "threshold", "metric": "loss", "value": 1, "filter": "lr >"}),
        (None, "rules/x", {"kind": "threshold", "metric": "loss", "value": 1, "targets": ["nobody"]}),
        ("name", "rules/a b", {"kind": "no_progress", "for_s": 9}),
        ("url", "targets/x", {"kind": "webhook", "url": "file:///etc/passwd"}),
        ("url", "targets/x", {"kind": "webhook", "url": "http://x/\r\nHost: y"}),
        ("url", "targets/x", {"kind": "webhook", "url": "http://x:99999/"}),
        ("url", "targets/x", {"kind": "webhook", "url": "http://[::1"}),
        ("recipients", "targets/x", {**post, "recipients": ["a@b\r\nBcc: c@d"]}),
        ("quiet_from", "targets/x", {**hook, "quiet_from": "25:00", "quiet_to": "07:00"}),
        ("quiet_to", "targets/x", {**hook, "quiet_from": "22:00"}),
        ("timezone", "targets/x", {**hook, "timezone": "../../etc/passwd"}),
        ("timezone", "targets/x", {**hook, "timezone": "Europe/Berln"}),
    ):
        answer = client.put(f"/api/alerts/{path}", json=body)
        assert answer.status_code in (400, 404, 422), (body, answer.text)
        assert answer.json()["error"]["field"] == field, (body, answer.text)
    second = client.put("/api/alerts/targets/hidden", json=hook, headers={"If-None-Match": "*"})
    assert (second.status_code, second.json()["error"]["field"]) == (409, "name"), "a new one replaces no other"
    assert client.delete("/api/alerts/targets/hidden").status_code == 200
    assert client.delete("/api/alerts/rules/none").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_restart_forgets_no_delivery_and_sends_what_was_on_its_way(
    tmp_path: Path, receiver: Receiver, how: str
) -> None:
    """A target that takes the connection and never answers has three tries of 10 s for each of 20 alerts."""
    observatory = ObservatoryProcess(tmp_path).start()
    try:
        with socket.create_server(("127.0.0.1", 0)) as silent, _client(observatory) as client:
            port = silent.getsockname()[1]
            before = _told_one_of_two(client, receiver.url(f"/{how}"), f"http://127.0.0.1:{port}/late", tmp_path)
        ids = [body["alert"]["id"] for body in receiver.told(f"/{how}")]
        getattr(observatory, how)()
        late = Receiver(port)
        with _client(observatory.start()) as client:
            after = client.get("/api/alerts/rules").json()
            (was,), (now,) = before["rules"], after["rules"]
            assert now["last_alert"] == was["last_alert"]
            assert now["deliveries"][0] == was["deliveries"][0], "the one of the hook"
            assert after["targets"][0] == before["targets"][0], "how many were sent, and when"
            wait_until(lambda: delivered(client, "high")["slow"] == ("sent", None), "what was on its way")
            given_up = client.get("/api/alerts/rules").json()["targets"][1]["failed"]
        assert [body["alert"]["id"] for body in late.told("/late")] == ids[given_up:]
        assert len(receiver.told(f"/{how}")) == len(ids) == 20, "what was sent is not sent again"
        late.stop()
    finally:
        observatory.dispose()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_what_still_holds_after_a_restart_is_not_told_again(tmp_path: Path, receiver: Receiver, how: str) -> None:
    """A rule that must last goes on counting, too: as if it had held for two hours already, it fires at once."""
    kept, path = tmp_path / "alert-deliveries.json", f"/holds-{how}"
    observatory = ObservatoryProcess(tmp_path).start()
    try:
        with _client(observatory) as client:
            put(client, "targets/hook", kind="webhook", url=receiver.url(path))
            put(client, "rules/high", kind="threshold", metric="loss", value=4, targets=["hook"])
            put(client, "rules/lasting", kind="threshold", metric="loss", value=4, for_s=3600, targets=["hook"])
            log(client, "bad", 9.0)
            wait_until(lambda: shown_rule(client, "lasting")["state"] == "waiting" and receiver.told(path), "the alert")
            wait_until(lambda: '"lasting": {"bad":' in kept.read_text() and '"sent": 1' in kept.read_text(), "the file")
        getattr(observatory, how)()
        known = json.loads(kept.read_text())
        known["since"]["lasting"]["bad"] -= 7_200
        kept.write_text(json.dumps(known))
        with _client(observatory.start()) as client:
            wait_until(lambda: shown_rule(client, "high")["state"] == "firing", "that it still holds")
            told = wait_until(lambda: len(receiver.told(path)) >= 2 and receiver.told(path), "the rule that lasts")
            rules = [body["alert"]["message"].partition(":")[0] for body in told]
            assert rules == ["high", "lasting"], "one queue in its order: the first was not sent again before"
            assert [one["message"].partition(":")[0] for one in client.get("/api/alerts").json()].count("high") == 1
    finally:
        observatory.dispose()


def _client(observatory: ObservatoryProcess) -> httpx.Client:
    return httpx.Client(base_url=observatory.http, timeout=60)


def _told_one_of_two(client: httpx.Client, hook: str, slow: str, folder: Path) -> dict[str, Any]:
    """Twenty alerts of one rule, which is quiet again, for two targets; what is shown when only `slow` waits."""
    put(client, "targets/hook", kind="webhook", url=hook)
    put(client, "targets/slow", kind="webhook", url=slow)
    put(client, "rules/high", kind="threshold", metric="loss", value=4, targets=["hook", "slow"])
    for value, step in ((9.0, 0), (1.0, 1)):
        for number in range(20):
            log(client, f"bad-{number}", value, first=step)
        state = "quiet" if step else "firing"
        wait_until(lambda state=state: shown_rule(client, "high")["state"] == state, state)  # type: ignore[misc]  # bound
    kept = folder / "alert-deliveries.json"
    wait_until(lambda: '"sent": 20' in kept.read_text(), "that it is on disk")
    shown: dict[str, Any] = client.get("/api/alerts/rules").json()
    assert [one["state"] for one in shown["rules"][0]["deliveries"]] == ["sent", "waiting"]
    return shown


@pytest.mark.slow
def test_files_that_cannot_be_read_keep_no_observatory_from_its_start(tmp_path: Path) -> None:
    for name in ("alert-rules.json", "alert-deliveries.json"):
        (tmp_path / name).write_text('{"rules": [7], "targets": [')
    observatory = ObservatoryProcess(tmp_path).start()
    try:
        aside = {one["part"] for one in observatory.get("/api/status")["set_aside"]}
        assert {"alert rules", "alert deliveries"} <= aside
        assert observatory.get("/api/alerts/rules") == {"rules": [], "targets": []}
    finally:
        observatory.dispose()


def shown_rule(client: httpx.Client, name: str) -> dict[str, Any]:
    rules: list[dict[str, Any]] = client.get("/api/alerts/rules").json()["rules"]
    return next(one for one in rules if one["name"] == name)
