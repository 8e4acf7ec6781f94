"""Rules and targets, kept in one file of the data folder that only its owner can read: targets hold secrets."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from strata.datadir import write_private
from strata.errors import InvalidArgument, NotFound, Refused
from strata.observatory.alerts.rules import Rule, Target
from strata.observatory.background.setaside import SetAside
from strata.types.plain import from_plain, to_plain

__all__ = ["RuleBook"]

_MAX_RULES = 200
_MAX_TARGETS = 50


class RuleBook:
    """Changed by one process; every change is on disk before it is answered."""

    def __init__(self, path: Path, aside: SetAside) -> None:
        self._path = path
        self.aside = aside
        self.rules: dict[str, Rule] = {}
        self.targets: dict[str, Target] = {}

    def load(self) -> None:
        """What cannot be read is set aside, piece by piece."""
        path, aside = self._path, self.aside
        if not path.exists():
            return
        kept: dict[str, list[dict[str, Any]]] = {}
        with aside.guard("alert rules", str(path)):
            kept = dict(json.loads(path.read_text()))
        for number, given in enumerate(kept.get("targets", ())):
            with aside.guard("alert rules", f"target {number}"):
                target = from_plain(Target, given)
                self.targets[target.name] = target
        for number, given in enumerate(kept.get("rules", ())):
            with aside.guard("alert rules", f"rule {number}"):
                rule = from_plain(Rule, given)
                self.rules[rule.name] = rule

    def put_rule(self, rule: Rule) -> None:
        for name in rule.targets:
            self.target(name)
        if rule.name not in self.rules and len(self.rules) >= _MAX_RULES:
            raise Refused(f"there are {_MAX_RULES} rules, no more are kept", hint="Delete one that nobody needs.")
        self._save({**self.rules, rule.name: rule}, self.targets)

    def delete_rule(self, name: str) -> None:
        if name not in self.rules:
            raise NotFound(f"there is no alert rule {name[:80]!r}", hint="GET /api/alerts/rules lists them.")
        self._save({key: rule for key, rule in self.rules.items() if key != name}, self.targets)

    def put_target(self, target: Target) -> None:
        if target.name not in self.targets and len(self.targets) >= _MAX_TARGETS:
            raise Refused(f"there are {_MAX_TARGETS} targets, no more are kept", hint="Delete one that nobody needs.")
        self._save(self.rules, {**self.targets, target.name: target})

    def keep_secrets(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """The same with the secrets that a change leaves out, as they are known. A password goes to no other server
        than the one it was given for."""
        known = self.targets.get(name)
        if known is None or known.kind != given["kind"]:
            return given
        secret = "password" if known.kind == "email" else "url"
        if given[secret]:
            return given
        place = ("host", "port", "user", "tls")
        if known.kind == "email" and known.password and any(getattr(known, one) != given[one] for one in place):
            hint = "Give it again; it is not sent to a place it is not for."
            raise InvalidArgument("another server needs its own password", hint=hint, field="password")
        return {**given, secret: getattr(known, secret)}

    def delete_target(self, name: str) -> None:
        """Also taken out of the rules that name it."""
        self.target(name)
        rules = {
            key: replace(rule, targets=tuple(one for one in rule.targets if one != name))
            for key, rule in self.rules.items()
        }
        self._save(rules, {key: target for key, target in self.targets.items() if key != name})

    def target(self, name: str) -> Target:
        found = self.targets.get(name)
        if found is None:
            raise NotFound(f"there is no alert target {name[:80]!r}", hint="GET /api/alerts/rules lists them.")
        return found

    def _save(self, rules: dict[str, Rule], targets: dict[str, Target]) -> None:
        body = {"rules": [*map(to_plain, rules.values())], "targets": [*map(to_plain, targets.values())]}
        try:
            write_private(self._path, json.dumps(body))
        except OSError as error:
            hint = f"See the disk of {self._path.parent}."
            raise Refused(f"the rules cannot be kept: {error.strerror}", hint=hint) from None
        self.rules, self.targets = rules, targets
