"""Answers and events against what the API says of itself."""

import re
from functools import cache, cached_property
from typing import Any

import jsonschema_rs

from scripts.contract.rest import openapi

__all__ = ["Description", "the_api"]


class Description:
    """Checks against an OpenAPI document; both raise with the place that does not fit."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._events: dict[str, Any] = {}

    def check_answer(self, path: str, body: Any) -> None:
        """The body of GET `path`."""
        found = next((validator for pattern, validator in self._answers if pattern.fullmatch(path)), None)
        assert found is not None, f"no route of the description is {path}"
        found.validate(body)

    def check_event(self, name: str, data: Any) -> None:
        """The data of an event of the stream."""
        if name not in self._events:
            events = self._document["components"]["schemas"]["StreamEvents"]["properties"]
            self._events[name] = self._compiled(events[name])
        self._events[name].validate(data)

    @cached_property
    def _answers(self) -> list[tuple[re.Pattern[str], Any]]:
        """Paths without a parameter first: they are no values of one."""
        found = []
        for path, item in sorted(self._document["paths"].items(), key=lambda pair: "{" in pair[0]):
            content = item.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
            if "application/json" in content:
                pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
                found.append((pattern, self._compiled(content["application/json"]["schema"])))
        return found

    def _compiled(self, schema: Any) -> Any:
        return jsonschema_rs.validator_for({**schema, "components": self._document["components"]})


@cache
def the_api() -> Description:
    """Today's."""
    return Description(openapi())
