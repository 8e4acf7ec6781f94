"""What a question consists of, as ClickHouse's own parser sees it (EXPLAIN AST), held against what is allowed. No
second parser: what is checked is what runs.
"""

import re
from collections.abc import Callable, Iterator, Sequence
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
# `SELECT * FROM (…)` around the question: its nodes, below the root, each with how many children it has.
_AROUND = (
    *(("ExpressionList", 1), ("SelectQuery", 2), ("ExpressionList", 1), ("Asterisk", 0)),
    *(("TablesInSelectQuery", 1), ("TablesInSelectQueryElement", 1), ("TableExpression", 1), ("Subquery", 1)),
)
_MAX_DEPTH = 300
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
    of ours and harmless functions. `lines` are of EXPLAIN AST of `SELECT * FROM (question)`; `formatted` gives that as
    the engine writes it, and is asked only when the question defines tables of its own."""
    nodes = _nodes(lines)
    for node in nodes:
        _check(node)
    around = tuple((node.kind, len(node.children)) for node in nodes[1 : len(_AROUND) + 1])
    # Beside it stands at most the FORMAT that the driver appends for the embedded engine.
    if around != _AROUND or nodes[0].children[1:] not in ([], nodes[-1:]):
        raise _refused("its brackets do not match")
    defined = sum(node.kind == "WithElement" for node in nodes)
    found = [match["quoted"] or match["plain"] for match in _DEFINED.finditer(formatted())] if defined else []
    names = [name for name in found if name]
    if len(names) != defined:
        raise _refused("WITH may only define plain names of tables")
    _check_tables(nodes[0], set(TABLES), iter(names))
    return {node.name for node in nodes if node.kind == "TableIdentifier"}


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
            if node.name.lower() in ("cast", "accuratecastornull"):
                _check_cast(node)
        case "Set":
            raise _refused("settings may not be changed here")
        case kind if kind not in _SILENT:
            raise _refused(f"{kind[:80]} may not stand in it")


def _check_in(node: _Node) -> None:
    """`x IN name` reads a table of that name."""
    arguments = node.children[0].children if node.children else []
    if len(arguments) != 2 or arguments[1].kind not in ("Subquery", "Literal", "Function"):
        raise _refused("IN takes (SELECT …) or values, no name")


def _check_cast(node: _Node) -> None:
    """Bytes that pretend to be the state of an aggregate would be read by code that trusts them."""
    arguments = node.children[0].children if node.children else []
    if len(arguments) != 2 or arguments[1].kind != "Literal" or "aggregatefunction" in arguments[1].name.lower():
        raise _refused("CAST takes the name of a plain type")


def _check_tables(node: _Node, known: set[str], names: Iterator[str]) -> None:
    """Every table must be known where it stands: any other the engine would look for among all there are. A name is
    known to the SELECT whose WITH defines it, after its definition and not inside of it. `names` are those of the
    definitions, as they are written; the engine has copied the WITH of a UNION's first SELECT to the end of the others.
    """
    if node.kind == "TableIdentifier" and node.name not in known:
        raise _refused(f"there is no table {node.name[:80]} here")
    name = next(names) if node.kind == "WithElement" else None
    inner = set(known) if node.kind == "SelectQuery" else known
    for child in sorted(node.children, key=_defines, reverse=True):
        _check_tables(child, inner, names)
    if name is not None:
        known.add(name)


def _defines(node: _Node) -> bool:
    return any(child.kind == "WithElement" for child in node.children)


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
        if len(path) > _MAX_DEPTH:
            raise _refused("it is nested too deeply")
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
