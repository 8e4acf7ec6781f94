"""Saved dashboards over REST: kept over a kill, never overwritten unseen, refused with the place when broken."""

import json
import threading
from typing import Any

import httpx
import pytest

from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.support.local_http import LOCAL

LINE = {"kind": "line", "id": "p1", "metrics": ["loss"], "formulas": ['"a b" - loss'], "log_x": True, "w": 6}
LAYOUT: dict[str, Any] = {
    "sections": [{"title": 'Über "all" 🚀', "panels": [LINE, {"kind": "markdown", "id": "p2", "text": "# hello"}]}],
    "baseline": "gone",
    "group_by": "config.lr",
}


def put(process: ObservatoryProcess, path: str, body: Any, **headers: str) -> httpx.Response:
    content = json.dumps(body)  # as ASCII: half a character reaches the server
    kind = {"Content-Type": "application/json"}
    return LOCAL.put(f"{process.http}/api/dashboards/{path}", content=content, headers={**kind, **headers})


def saved(process: ObservatoryProcess, path: str, name: str, **headers: str) -> int:
    answer = put(process, path, {"name": name, "project": "vision", "layout": LAYOUT}, **headers)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["version"])


def test_a_dashboard_is_kept_listed_and_deleted(observatory: ObservatoryProcess) -> None:
    process = observatory
    wait_until(process.store_ready, "the store's start")
    assert process.get("/api/dashboards") == []
    assert saved(process, "mine", "Mine") == 1
    assert saved(process, "mine", "Mine, better", **{"If-Match": '"1"'}) == 2
    process.kill()
    process.start()
    wait_until(process.store_ready, "the store's start")
    [head] = process.get("/api/dashboards", project="vision")
    assert (head["name"], head["version"], head["num_panels"]) == ("Mine, better", 2, 2)
    assert process.get("/api/dashboards", project="other") == []
    found = process.get("/api/dashboards/mine")
    [section] = found["layout"]["sections"]
    assert section["title"] == LAYOUT["sections"][0]["title"]
    assert {name: section["panels"][0][name] for name in LINE} == LINE
    assert section["panels"][0]["smoothing_kind"] == "ema", "what was left out has its default"
    assert (found["layout"]["baseline"], found["layout"]["runs"]) == ("gone", None)
    assert LOCAL.get(f"{process.http}/api/dashboards/mine").headers["etag"] == '"2"'
    url = f"{process.http}/api/dashboards/mine"
    assert LOCAL.delete(url, headers={"If-Match": "1"}).status_code == 412
    assert LOCAL.delete(url, headers={"If-Match": "2"}).status_code == 200
    assert LOCAL.get(url).status_code == 404
    assert LOCAL.delete(url).status_code == 404
    assert process.get("/api/dashboards") == []
    assert saved(process, "mine", "Again") == 4, "a version is never used twice"


def test_nobody_overwrites_what_they_have_not_seen(shared_observatory: ObservatoryProcess) -> None:
    process = shared_observatory
    body = {"name": "Shared", "layout": LAYOUT}
    assert put(process, "shared", body).status_code == 200
    again = put(process, "shared", body)
    assert (again.status_code, again.json()["error"]["code"]) == (412, "outdated")
    answers: list[httpx.Response] = []
    writers = [
        threading.Thread(target=lambda: answers.append(put(process, "shared", body, **{"If-Match": '"1"'})))
        for _ in range(8)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 7, "one of eight wins"
    refused = next(answer for answer in answers if answer.status_code == 412).json()["error"]
    assert "saved version 2" in refused["message"]
    assert "another name" in refused["hint"]
    assert put(process, "shared", body, **{"If-Match": "*"}).json()["version"] == 3
    assert put(process, "none", body, **{"If-Match": '"1"'}).status_code == 412
    assert put(process, "shared", body, **{"If-Match": "soon"}).status_code == 400


def with_panel(**panel: Any) -> dict[str, Any]:
    return {"name": "n", "layout": {"sections": [{"panels": [{"id": "a", **panel}]}]}}


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (with_panel(kind="pie"), "layout.sections.0.panels.0"),
        (with_panel(kind="line", w=13), "layout.sections.0.panels.0.line.w"),
        (with_panel(kind="line", smoothing="NaN"), "layout.sections.0.panels.0.line.smoothing"),
        (with_panel(kind="line", metric="loss"), "layout.sections.0.panels.0.line.metric"),
        (with_panel(kind="markdown", text="x" * 20_001), "layout.sections.0.panels.0.markdown.text"),
        (with_panel(kind="markdown", text="\ud800"), "layout.sections[0].panels[0].text"),
        (with_panel(kind="number", h=2**70), "layout.sections.0.panels.0.number.h"),
        ({"name": "", "layout": {}}, "name"),
        ({"name": "n", "layout": {"sections": [{"panels": [LINE, LINE]}]}}, "'p1'"),
        ({"name": "n", "layout": {"sections": [{}] * 51}}, "layout.sections"),
        ({"name": "n", "layout": []}, "layout"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_its_place(
    shared_observatory: ObservatoryProcess, body: Any, place: str
) -> None:
    answer = put(shared_observatory, "broken", body)
    assert answer.status_code in (400, 422), answer.text
    assert place in answer.json()["error"]["message"]
    assert LOCAL.get(f"{shared_observatory.http}/api/dashboards/broken").status_code == 404


def test_a_dashboard_has_a_bound_and_a_name_of_the_grammar(shared_observatory: ObservatoryProcess) -> None:
    texts = [{"kind": "markdown", "id": str(n), "text": "x" * 19_000} for n in range(15)]
    answer = put(shared_observatory, "large", {"name": "n", "layout": {"sections": [{"panels": texts}]}})
    assert (answer.status_code, "262,144" in answer.text) == (400, True)
    assert put(shared_observatory, "a%20b", {"name": "n", "layout": {}}).status_code == 400
