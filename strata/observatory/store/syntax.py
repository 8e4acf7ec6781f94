"""What a question consists of, as ClickHouse's own parser sees it (EXPLAIN AST), held against what is allowed. No
second parser: what is checked is what runs.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from strata.errors import InvalidArgument
from strata.observatory.store.functions import is_harmless

__all__ = ["TABLES", "check_syntax", "one_statement"]

TABLES = ("metric_points", "runs", "logs")

_LINE = re.compile(r"( *)([A-Za-z]+)(?: (.*?))??(?: \(alias .*?\))?(?: \(children (\d+)\))?")
# Kinds of nodes that mean nothing by themselves.
_SILENT = frozenset(
    {
        *("SelectWithUnionQuery", "SelectQuery", "SelectIntersectExceptQuery", "ExpressionList", "Subquery"),
        *("TablesInSelectQuery", "TablesInSelectQueryElement", "TableExpression", "TableJoin", "ArrayJoin"),
        *("WithElement", "OrderByElement", "WindowDefinition", "WindowListElement", "InterpolateElement"),
        *("Asterisk", "QualifiedAsterisk", "Literal", "Identifier", "TableIdentifier"),
        *("ColumnsRegexpMatcher", "ColumnsTransformerList", "ColumnsExceptTransformer"),
    }
)
# In the engine's own formatting. Texts and quoted names are passed over: none of them defines a name.
_BEGINS = r"\s+AS\s*\(\s*(?=SELECT|WITH)"
_DEFINED = re.compile(
    rf"`(?P<quoted>[A-Za-z_]\w*)`{_BEGINS}|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`|\b(?P<plain>[A-Za-z_]\w*){_BEGINS}"
)
_SEPARATOR = re.compile(r";|\\G|\x00")
# A question whose only quotes are plain ones, without comments: where its texts end is beyond doubt.
_PLAIN_TEXT = re.compile(
    r"(?:[^'\"`$#;/\\\-\x00-\x08\x7f-\U0010ffff]|-(?!-)|/(?!\*)|'(?:[^'\\\x00]|\\.)*')*", re.DOTALL
)
_HINT = "A question is one SELECT over metric_points, runs and logs; docs/asking.md has what it may use."


@dataclass(slots=True)
class _Node:
    kind: str
    name: str
    children: list["_Node"] = field(default_factory=list)


def one_statement(question: str) -> str:
    """The question without what ends it. The embedded engine runs several statements at once, and only the first would
    be checked: what separates them is let through where it must be inside of a text."""
    text = question.strip().rstrip("; \t\r\n")
    word = re.match(r"[A-Za-z]+", text)
    if not text or (word and word[0].upper() not in ("SELECT", "WITH")):
        raise InvalidArgument(f"a question is one SELECT, this is {text[:40] or 'empty'}", hint=_HINT)
    if _SEPARATOR.search(text) and not _PLAIN_TEXT.fullmatch(text):
        raise _refused("a `;` may only stand inside of a text, in a question without comments or other quotes")
    return text


def check_syntax(lines: Sequence[str], formatted: Callable[[], str]) -> set[str]:
    """Returns the tables that a question names. Raises InvalidArgument for one that reaches for anything but the three
    of ours and harmless functions. `lines` are of EXPLAIN AST; `formatted` gives the question as the engine writes it,
    and is asked only when the question names tables of its own."""
    nodes = _nodes(lines)
    for node in nodes:
        _check(node)
    named = {node.name for node in nodes if node.kind == "TableIdentifier"}
    others = named.difference(TABLES)
    if others:
        others -= {found["quoted"] or found["plain"] for found in _DEFINED.finditer(formatted())}
    if others:
        raise _refused(f"there is no table {min(others)[:80]} here")
    return named


def _check(node: _Node) -> None:
    match node.kind:
        case "TableExpression":
            if any(child.kind == "Function" for child in node.children):
                raise _refused(f"{node.children[0].name[:80]}() is a table function")
        case "Function":
            if not is_harmless(node.name):
                raise _refused(f"the function {node.name[:80]} may not be called here")
            if node.name.lower() in ("in", "notin"):
                _check_in(node)
        case "Set":
            raise _refused("settings may not be changed here")
        case kind if kind not in _SILENT:
            raise _refused(f"{kind[:80]} may not stand in it")


def _check_in(node: _Node) -> None:
    """`x IN name` reads a table of that name."""
    arguments = node.children[0].children if node.children else []
    if len(arguments) != 2 or arguments[1].kind not in ("Subquery", "Literal", "Function"):
        raise _refused("IN takes (SELECT …) or values, no name")


def _nodes(lines: Sequence[str]) -> list[_Node]:
    """All nodes of an EXPLAIN AST, each with its children. Its names stand unquoted in the lines: whatever does not add
    up is refused, so that a name with line breaks in it cannot pretend to be something else."""
    nodes: list[_Node] = []
    path: list[tuple[_Node, int]] = [(_Node("", ""), 1)]  # each with the children that it still needs
    for line in lines:
        found = _LINE.fullmatch(line)
        while path and path[-1][1] == 0:
            path.pop()
        if found is None or len(found[1]) != len(path) - 1:
            raise _refused("it has a name that is not plain")
        node = _Node(found[2], found[3] or "")
        nodes.append(node)
        parent, missing = path.pop()
        parent.children.append(node)
        path += [(parent, missing - 1), (node, int(found[4] or 0))]
    if any(missing for _, missing in path):
        raise _refused("it has a name that is not plain")
    return nodes


def _refused(why: str) -> InvalidArgument:
    return InvalidArgument(f"the question was not asked: {why}", hint=_HINT)
