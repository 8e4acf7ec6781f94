"""Alert rules and their targets: list, set, delete, and one alert as a test."""

import asyncio
import logging
import time
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from pydantic import Field

from strata.errors import Conflict
from strata.observatory.alerts.rules import Rule, Target
from strata.observatory.answers.alerts import Alert, Severity
from strata.observatory.answers.rules import AlertRules, Comparison, RuleInfo, RuleKind, TargetInfo, TargetKind
from strata.observatory.answers.status import Success
from strata.observatory.http.asker import asker
from strata.observatory.http.body import Body, Int32
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer
from strata.observatory.records.fill import fill

__all__ = ["alert_rules_router"]

_log = logging.getLogger(__name__)


class SetRule(Body):
    """A rule; docs/alerts.md says what each kind needs."""

    kind: RuleKind
    metric: str = ""
    comparison: Comparison = "above"
    value: float | None = None
    for_s: float = 0.0
    filter: str = ""
    baseline: str = ""
    tolerance_percent: float = 10.0
    severity: Severity = "warning"
    targets: list[str] = Field(default_factory=list)
    enabled: bool = True


class SetTarget(Body):
    """A target. A URL or password that is left out stays as it is known."""

    kind: TargetKind
    url: str = ""
    host: str = ""
    port: Int32 = 587
    tls: bool = True
    user: str = ""
    password: str = ""
    sender: str = ""
    recipients: list[str] = Field(default_factory=list)
    all_alerts: bool = False
    quiet_from: str = ""
    quiet_to: str = ""
    timezone: str = "UTC"


def alert_rules_router(parts: Parts) -> APIRouter:
    """One change at a time: each rewrites the whole file."""
    router = APIRouter(tags=["alerts"])
    book, deliveries, writing = parts.rules, parts.deliveries, asyncio.Lock()

    @router.get("/api/alerts/rules")
    async def rules() -> Answer[AlertRules]:
        return answer(
            AlertRules(
                rules=[_shown_rule(parts, rule) for rule in book.rules.values()],
                targets=[_shown(parts, target) for target in book.targets.values()],
            )
        )

    @router.put("/api/alerts/rules/{name}")
    async def set_rule(name: str, body: SetRule, request: Request) -> Answer[Success]:
        """With `If-None-Match: *` only if there is none of that name; so are targets."""
        rule = Rule(**{**body.model_dump(), "name": name, "targets": tuple(body.targets)})
        async with writing:
            _check_new(request, "rule", name in book.rules)
            await asyncio.to_thread(book.put_rule, rule)
        _log.info("%s set alert rule %s", asker(request), name)
        return answer(Success(success=True))

    @router.delete("/api/alerts/rules/{name}")
    async def delete_rule(name: str, request: Request) -> Answer[Success]:
        async with writing:
            await asyncio.to_thread(book.delete_rule, name)
        _log.info("%s deleted alert rule %s", asker(request), name)
        return answer(Success(success=True))

    @router.put("/api/alerts/targets/{name}")
    async def set_target(name: str, body: SetTarget, request: Request) -> Answer[Success]:
        async with writing:
            _check_new(request, "target", name in book.targets)
            given = book.keep_secrets(name, body.model_dump())
            target = Target(**{**given, "name": name, "recipients": tuple(body.recipients)})
            await asyncio.to_thread(book.put_target, target)
        _log.info("%s set alert target %s", asker(request), name)
        return answer(Success(success=True))

    @router.delete("/api/alerts/targets/{name}")
    async def delete_target(name: str, request: Request) -> Answer[Success]:
        async with writing:
            await asyncio.to_thread(book.delete_target, name)
        _log.info("%s deleted alert target %s", asker(request), name)
        return answer(Success(success=True))

    @router.post("/api/alerts/targets/{name}/test")
    async def test_target(name: str, request: Request) -> Answer[Success]:
        """Sends one alert there now, whatever the hour; says why when it cannot."""
        await deliveries.send(book.target(name), _test_alert(asker(request)))
        return answer(Success(success=True))

    return router


def _check_new(request: Request, what: str, exists: bool) -> None:
    """A form that makes a new one never replaces another's."""
    if exists and request.headers.get("if-none-match") == "*":
        told = f"a {what} of this name exists"
        raise Conflict(told, hint="Choose another name, or change the one that is there.", field="name")


def _shown_rule(parts: Parts, rule: Rule) -> RuleInfo:
    watch = parts.rule_watcher.watch_of(rule.name)
    last = parts.deliveries.log.fired.get(rule.name)
    return fill(
        RuleInfo,
        rule,
        watch,
        targets=list(rule.targets),
        state=watch.state_of(rule),
        last_alert=last,
        deliveries=parts.deliveries.log.of_alert(last.id) if last is not None else [],
    )


def _shown(parts: Parts, target: Target) -> TargetInfo:
    place = f"{target.host}:{target.port}" if target.kind == "email" else _place(target.url)
    return fill(
        TargetInfo,
        target,
        parts.deliveries.log.post_of(target.name),
        place=place,
        has_password=bool(target.password),
        recipients=list(target.recipients),
    )


def _place(url: str) -> str:
    """The server alone: a path, a query and what stands before an @ may be secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _test_alert(who: str) -> Alert:
    about = dict.fromkeys(("run_id", "task_id", "worker_id", "rank", "step"))
    return fill(
        Alert,
        id="alert_test",
        timestamp_ms=round(time.time() * 1000),
        kind="test",
        severity="info",
        message=f"This is a test of Strata's alerts, asked for by {who}.",
        **about,
    )
