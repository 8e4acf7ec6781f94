"""The lines of EXPLAIN AST against what a question may hold; the engine's own lines are in the integration test."""

import pytest

from strata.errors import InvalidArgument
from strata.observatory.store.functions import is_harmless
from strata.observatory.store.syntax import check_syntax, one_statement

AROUND = [
    "SelectWithUnionQuery (children 2)",
    " ExpressionList (children 1)",
    "  SelectQuery (children 2)",
    "   ExpressionList (children 1)",
    "    Asterisk",
    "   TablesInSelectQuery (children 1)",
    "    TablesInSelectQueryElement (children 1)",
    "     TableExpression (children 1)",
    "      Subquery (children 1)",
]


def lines(*inner: str) -> list[str]:
    """A SELECT of one list, whose items are given with their own indentation, in brackets."""
    items = sum(not line.startswith(" ") for line in inner)
    head = ["SelectWithUnionQuery (children 1)", " ExpressionList (children 1)", "  SelectQuery (children 1)"]
    asked = [*head, f"   ExpressionList (children {items})", *(f"    {line}" for line in inner)]
    return [*AROUND, *(f"       {line}" for line in asked), " Identifier Native"]


def within(*inner: str) -> list[str]:
    """A SELECT of one list, which other lines stand beside."""
    items = sum(not line.startswith(" ") for line in inner)
    head = ["SelectQuery (children 1)", f" ExpressionList (children {items})"]
    return [*head, *(f"  {line}" for line in inner)]


def defining(name: str) -> list[str]:
    """`x AS (SELECT FROM name)` in lines; which x is defined stands in the formatted question."""
    asked = within(f"TableIdentifier {name}")
    return ["WithElement (children 1)", *(f" {line}" for line in asked)]


IN = ["Function in (children 1)", " ExpressionList (children 2)", "  Identifier a"]


@pytest.mark.parametrize(
    "inner",
    [
        ["Literal UInt64_1"],
        ["Identifier a (alias b)", "Asterisk"],
        ["Function sumIf (alias x) (children 1)", " ExpressionList (children 1)", "  Identifier a"],
        [*IN, "  Literal Tuple_(UInt64_1, UInt64_2)"],
        ["TableIdentifier runs (alias r)"],
        [*defining("runs"), *defining("mine"), "TableIdentifier top"],
        ["Literal 'file (children 3)'"],
    ],
)
def test_what_computes_is_let_through(inner: list[str]) -> None:
    check_syntax(lines(*inner), lambda: "WITH mine AS\n (\n  SELECT 1), `top` AS (SELECT 2) SELECT * FROM mine")


@pytest.mark.parametrize(
    ("inner", "why"),
    [
        (["Function file (children 1)", " ExpressionList (children 1)", "  Literal '/etc/passwd'"], "function file"),
        (["TableExpression (children 1)", " Function url (children 0)"], "table function"),
        (["TableIdentifier system.tables"], "no table system.tables"),
        (["TableIdentifier other"], "no table other"),
        (["WithElement", "TableIdentifier other"], "WITH may only define plain names"),
        (["TableIdentifier window"], "no table window"),
        ([*IN, "  Identifier system.one"], "IN takes"),
        (["Set"], "settings"),
        (["ColumnsApplyTransformer"], "ColumnsApplyTransformer"),
        # names with line breaks and brackets in them
        (["Identifier a", " Literal 1"], "not plain"),
        (["Identifier a (children 1)"], "not plain"),
        ([*IN[:2], "  Identifier a (children 1)", "  Identifier system.one"], "not plain"),
        ([*IN[:2], "  Identifier a", "  Literal 1", "  Identifier system.one"], "not plain"),
        (["Function count (alias x"], "not plain|may not"),
        ([""], "not plain"),
    ],
)
def test_what_reaches_further_is_refused(inner: list[str], why: str) -> None:
    canonical = "SELECT 'other AS (SELECT 1)', `other AS (SELECT` FROM runs WINDOW window AS (ORDER BY a)"
    with pytest.raises(InvalidArgument, match=why):
        check_syntax(lines(*inner), lambda: canonical)


@pytest.mark.parametrize(
    ("inner", "written", "why"),
    [
        (defining("a"), "WITH a AS (SELECT * FROM a)", "there is no table a"),
        ([*defining("b"), *defining("runs")], "WITH a AS (SELECT * FROM b), b AS (SELECT 1)", "there is no table b"),
        ([*within(*defining("runs")), "TableIdentifier a"], "(WITH a AS (SELECT 1)), a", "there is no table a"),
        (defining("runs"), "WITH a (b) AS (SELECT 1)", "WITH may only define plain names"),
        (["WithElement", "TableIdentifier other"], "SELECT 1", "WITH may only define plain names"),
    ],
)
def test_a_name_is_known_after_its_definition_where_it_was_defined(inner: list[str], written: str, why: str) -> None:
    check_syntax(lines(*defining("runs"), "TableIdentifier a"), lambda: "WITH a AS (SELECT 1) SELECT 2")
    copied = ["SelectQuery (children 2)", *within("TableIdentifier a")[1:], *within(*defining("runs"))[1:]]
    check_syntax(lines(*copied), lambda: "WITH a AS (SELECT 1) SELECT 2")
    with pytest.raises(InvalidArgument, match=why):
        check_syntax(lines(*inner), lambda: written)


def test_brackets_that_the_question_closes_itself() -> None:
    whole = lines("Literal UInt64_1")
    union = [line.replace(" ExpressionList (children 1)", " ExpressionList (children 2)") for line in whole[:2]]
    other = ["  SelectQuery (children 1)", "   ExpressionList (children 1)", "    Literal UInt64_1"]
    with pytest.raises(InvalidArgument, match="brackets do not match"):
        check_syntax([*union, *whole[2:-1], *other, whole[-1]], str)
    deep = [f"{' ' * depth}Subquery (children 1)" for depth in range(7, 400)]
    with pytest.raises(InvalidArgument, match="nested too deeply"):
        check_syntax([*AROUND, *deep], str)


def test_functions_that_compute_and_those_that_do_not() -> None:
    assert all(map(is_harmless, ["COUNT", "sumIf", "quantileIf", "groupArrayDistinct", "lambda", "JSONExtractFloat"]))
    strange = [
        "file",
        "fileIf",
        "url",
        "sleep",
        "dictGet",
        "joinGet",
        "getSetting",
        "hostName",
        "printf",
        "",
        "if_",
        "lowerIf",
    ]
    assert not any(map(is_harmless, strange))


@pytest.mark.parametrize(
    "question",
    [
        "SELECT 1",
        "select 1 -- the first",
        "/* all */ SELECT 1",
        "(SELECT 1) UNION ALL (SELECT 2)",
        "SELECT 'a;b', 'it''s; \\' too;', -1 / 2",
        "SELECT 'é;“'",
    ],
)
def test_one_statement_goes_on_as_it_was_written(question: str) -> None:
    assert one_statement(f" {question} ;\n") == question


@pytest.mark.parametrize(
    "question",
    [
        "SELECT 1; DROP TABLE runs",
        "SELECT 1 -- '\n; DROP TABLE runs --'",
        "SELECT 1 /* ' */; DROP TABLE runs /* ' */",
        "SELECT 1 # '\n; DROP TABLE runs -- '",
        "SELECT $a$ ' $a$; DROP TABLE runs; SELECT $a$ ' $a$",
        "SELECT `'`; DROP TABLE runs; SELECT `'`",
        'SELECT "\'"; DROP TABLE runs; SELECT "\'"',
        "SELECT “'“; DROP TABLE runs; SELECT “'“",
        "SELECT '\\'; DROP TABLE runs",
        "SELECT 1 \\G DROP TABLE runs",
        "SELECT 1\0; DROP TABLE runs",
        "SELECT 1\0",
    ],
)
def test_what_could_be_two_statements_is_refused(question: str) -> None:
    with pytest.raises(InvalidArgument, match="may only stand inside of a text"):
        one_statement(question)


@pytest.mark.parametrize("question", ["", " ;; ", "DROP TABLE runs", "EXPLAIN SELECT 1", "graph = 1 SELECT 1"])
def test_what_is_no_select_is_named(question: str) -> None:
    with pytest.raises(InvalidArgument, match="a question is one SELECT, this is"):
        one_statement(question)
