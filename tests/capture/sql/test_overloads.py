"""SQL functions of one name: overloaded, and of several scripts."""

from __future__ import annotations

from itertools import permutations

import pytest

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.resolve.knowledge import Knowledge
from govtool.capture.sql.walk.state import Inline

_ONE = "CREATE FUNCTION f(p int) RETURNS int LANGUAGE sql AS 'SELECT p';"
_TWO = "CREATE FUNCTION f(p int, q int) RETURNS int LANGUAGE sql AS 'SELECT q';"
_TEXT = "CREATE FUNCTION f(p text) RETURNS int LANGUAGE sql AS 'SELECT 1';"
_NONE = "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT max(k) FROM a';"


def _sources(dialect: str, *texts: str) -> dict[str, list[str]]:
    """The columns that the values of each dataset are made of."""
    scripts = [Script(f"{number}.sql", text) for number, text in enumerate(texts)]
    found = extract(scripts, Options(dialect=dialect)).derivations
    return {one.target: sorted({e.source.path for e in one.edges if e.target_path == "v"}) for one in found}


@pytest.mark.parametrize(
    ("functions", "call", "sources"),
    [
        ((_ONE, _TWO), "f(x)", ["x"]),
        ((_TWO, _ONE), "f(y, x)", ["x"]),
        ((_ONE, _TEXT), "f(x)", ["x"]),
        ((_ONE, _NONE), "f(x)", ["x"]),
        ((_NONE, _ONE), "f()", ["k"]),
        ((_ONE, _ONE.replace("CREATE", "CREATE OR REPLACE").replace("SELECT p", "SELECT 1")), "f(x)", ["x"]),
        ((_ONE,), "f(x, y)", ["x", "y"]),
    ],
)
def test_a_call_means_the_functions_with_as_many_parameters(
    functions: tuple[str, ...], call: str, sources: list[str]
) -> None:
    assert _sources("postgres", *functions, f"CREATE VIEW w AS SELECT {call} AS v FROM b;")["w"] == sources


@pytest.mark.parametrize(
    ("dialect", "made"),
    [
        ("bigquery", "CREATE TEMP FUNCTION f(p INT64) AS ({});"),
        ("spark", "CREATE TEMPORARY FUNCTION f(p INT) RETURNS INT RETURN {};"),
    ],
)
def test_a_script_calls_its_own_temporary_function(dialect: str, made: str) -> None:
    texts = [f"{made.format(body)} CREATE TABLE w{body} AS SELECT f(x) AS v FROM b;" for body in ("p", "0")]
    for scripts in (texts, texts[::-1]):
        assert _sources(dialect, *scripts) == {"wp": ["x"], "w0": []}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_view_runs_what_any_script_makes_of_a_function(order: tuple[int, ...]) -> None:
    made = "CREATE OR REPLACE FUNCTION f(p int) RETURNS int LANGUAGE sql AS 'SELECT max({}) FROM a';"
    texts = [made.format("k"), made.format("l"), "CREATE VIEW w AS SELECT f(x) AS v FROM b;"]
    assert _sources("postgres", *[texts[n] for n in order])["w"] == ["k", "l"]
    assert _sources("postgres", f"{texts[order[0]]} {texts[order[1]]}", texts[order[2]])["w"] == ["k", "l"]


def test_temporary_functions_are_of_their_script() -> None:
    texts = ["CREATE TEMP FUNCTION f(p INT64) AS (0);", "CREATE TABLE w AS SELECT f(x) AS v FROM b;"]
    assert _sources("bigquery", *texts)["w"] == ["x"]


def test_knowledge_keeps_overloads() -> None:
    import sqlglot

    one, two = (Inline("f", ("p",), sqlglot.parse_one(body), types=(body,)) for body in ("1", "p"))
    known = Knowledge(functions={"f": two.beside(one)})
    assert Knowledge.from_json(known.to_json()) == known
