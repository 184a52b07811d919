"""What a long script keeps in memory: few trees, few tokens at once; and the answer is the same."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator

import pytest
from lineage_cases import Case, load_cases, run_case
from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql import collector
from govtool.capture.sql.extract import Extraction, Options, ScriptMaker, extract, macros_of
from govtool.capture.sql.files import Script
from govtool.capture.sql.resolve.batch import Batch
from govtool.capture.sql.resolve.states import StatementState
from govtool.capture.sql.scripts import script, trees
from govtool.capture.sql.scripts.script import parse_script
from govtool.capture.sql.scripts.trees import TreeCache
from govtool.capture.sql.syntax.lexer import lexer
from govtool.model import Derivation

CASES = load_cases()
DIALECTS = sorted({case.dialect for case in CASES})


def run(text: str, dialect: str = "postgres") -> Extraction:
    return extract([Script("f.sql", text)], Options(dialect=dialect))


def live_nodes() -> int:
    """Nodes that are alive without the help of the cyclic collector, as during a batch."""
    return sum(isinstance(thing, exp.Expr) for thing in gc.get_objects())


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_trees_that_are_not_held_change_no_answer(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for case in CASES:
        if case.dialect == dialect:
            with monkeypatch.context() as patch:
                held = run_case(case)
                patch.setattr(trees, "ROOM", 0)
                assert run_case(case) == held, case.id


@pytest.mark.parametrize(
    ("bound", "value"),
    [
        ("ROOM", 0),
        pytest.param("ROOM", 500, marks=pytest.mark.long),
        pytest.param("ROOM", 5_000, marks=pytest.mark.long),
        ("MANY", -1),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_bound_on_trees_changes_an_answer_of_a_batch(
    dialect: str, bound: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every kind of statement, with the places of expressions and of notes: each case a script, and all as one.

    Beyond ``ROOM`` trees are not held, beyond ``MANY`` they are let go.
    """
    cases = [case for case in CASES if case.dialect == dialect]
    alone = [Script(f"{number}/{case.headers.get('file', 'case.sql')}", case.sql) for number, case in enumerate(cases)]
    plain = [case.sql.rstrip().removesuffix(";") for case in cases if _plain(case)]
    for scripts in (alone, [Script("f.sql", "; ".join(plain))]):
        with monkeypatch.context() as patch:
            held = extract(scripts, Options(dialect=dialect))
            patch.setattr(trees, bound, value)
            _assert_same(extract(scripts, Options(dialect=dialect)), held)


def _assert_same(found: Extraction, expected: Extraction) -> None:
    assert found.diagnostics == expected.diagnostics
    assert found.derivations == expected.derivations
    assert found == expected


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (
            "snowflake",
            "CREATE OR REPLACE TABLE t (a int);\nINSERT INTO t SELECT a FROM s;\nCREATE TABLE u AS SELECT * FROM t;\n"
            "CREATE OR REPLACE TABLE t (b int);\nINSERT INTO t SELECT b FROM r;\nCREATE TABLE v AS SELECT * FROM t;",
        ),
        (
            "postgres",
            "CREATE TABLE p (a int) PARTITION BY LIST (a);\nCREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);\nINSERT INTO p SELECT a FROM s",
        ),
        ("postgres", "CREATE TEMP TABLE t AS SELECT a FROM s;\nCREATE TABLE u AS SELECT a FROM t"),
        (
            "tsql",
            "CREATE TYPE dbo.ids AS TABLE (id int, n int);\nGO\nDECLARE @x dbo.ids;\nINSERT INTO @x SELECT * FROM s;\nSELECT * INTO t FROM @x",
        ),
        ("tsql", "SELECT a INTO #t FROM r UNION SELECT a FROM s;\nSELECT * INTO u FROM #t"),
        ("redshift", "CREATE TABLE #t DISTKEY(a) AS SELECT a FROM s;\nCREATE TABLE u AS SELECT * FROM #t"),
        ("snowflake", "BEGIN\n  SELECT a INTO x FROM s;\n  INSERT INTO t SELECT b FROM r WHERE b = :x;\nEND"),
        (
            "bigquery",
            "SELECT 1;\nEXECUTE IMMEDIATE 'CREATE TABLE d.t AS WITH n AS (SELECT 1 AS b) SELECT gone FROM n'",
        ),
        (
            "bigquery",
            "CREATE TEMP FUNCTION f(x INT64) AS ((WITH n AS (SELECT 1 AS b) SELECT gone FROM n));\n\nSELECT 1;\n"
            "CREATE TABLE d.t AS\nSELECT f(a) AS v FROM d.s",
        ),
        ("tsql", "SELECT 1 AS one;\nSELECT id, EXISTS (FROM r WHERE b = s.id) AS e FROM s"),
        (
            "postgres",
            "CREATE TABLE p (id int PRIMARY KEY, n int);\nCREATE TABLE c (pid int REFERENCES p ON DELETE CASCADE);\n"
            "CREATE TABLE q (a int) PARTITION BY LIST (a);\nCREATE TABLE q1 PARTITION OF q FOR VALUES IN (1)",
        ),
        ("postgres", "SELECT 1 AS one;\nSELECT $1, a\nFROM s WHERE b.c = '$'; SELECT $2, nothing.d\nFROM r"),
    ],
)
def test_a_stub_has_all_that_others_ask_of_a_tree(dialect: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = run(text, dialect)
    for bound, value in (("ROOM", 0), ("MANY", -1)):
        with monkeypatch.context() as patch:
            patch.setattr(trees, bound, value)
            _assert_same(run(text, dialect), held)


def test_a_note_on_the_first_line_of_a_body_has_its_column_in_the_script() -> None:
    text = "EXECUTE IMMEDIATE 'CREATE TABLE d.t AS WITH n AS (SELECT 1 AS b) SELECT gone FROM n'"
    (note,) = [note for note in run(text, "bigquery").diagnostics if note.code == "unresolved"]
    assert (note.line, note.column) == (1, text.index("gone") + 1)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_script_read_in_windows_says_the_same(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ";\n".join(case.sql.rstrip().removesuffix(";") for case in CASES if case.dialect == dialect and _plain(case))

    def stated() -> list[tuple[object, ...]]:
        return [
            (
                *(s.text, s.line, s.column, s.status, s.head, s.routine, s.stands_for, s.raw_line + s.shift),
                s.tree and [type(node) for node in s.tree.walk()],
            )
            for s in parse_script(text, dialect, file="f.sql")
        ]

    whole = stated()
    for window in (1, 100, 1000):
        monkeypatch.setattr(script, "WINDOW", window)
        assert stated() == whole, window


def _plain(case: Case) -> bool:
    """Whether the text of a case is a script; templates are rendered first, some blocks go on past semicolons."""
    sql = case.sql.lower()
    return "{{" not in sql and "{%" not in sql and not re.search(r"with function|\bdo (also |instead )?\(", sql)


@pytest.mark.usefixtures("uncollected")
def test_of_many_definitions_few_trees_are_kept() -> None:
    text = "".join(
        f"CREATE TABLE t{i} ({', '.join(f'c{j} int' for j in range(30))});\nCREATE VIEW v{i} AS SELECT c1 + c2 AS c FROM t{i};\n"
        for i in range(200)
    )
    before = live_nodes()
    statements = parse_script(text, "postgres", tree_cache=TreeCache(room=2_000))
    assert len(statements) == 400
    per_statement = (live_nodes() - before) / len(statements)
    assert per_statement < 10, "a tree of CREATE TABLE has more than a hundred nodes"


@pytest.mark.usefixtures("uncollected")
def test_a_tree_that_was_unpacked_is_freed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "ROOM", 0)
    text = "".join(f"CREATE VIEW v{i} AS SELECT {', '.join(f'a{j}' for j in range(50))} FROM t;\n" for i in range(50))
    before = live_nodes()
    extraction = run(text)
    assert len(extraction.derivations) == 50
    assert live_nodes() - before < 50 * 10


def test_of_many_trees_each_is_freed_when_it_is_of_no_more_use(
    monkeypatch: pytest.MonkeyPatch, uncollected: None
) -> None:
    monkeypatch.setattr(trees, "MANY", -1)
    text = "".join(f"CREATE VIEW v{i} AS SELECT {', '.join(f'a{j}' for j in range(50))} FROM t;\n" for i in range(50))
    before = live_nodes()
    assert len(run(text).derivations) == 50
    assert live_nodes() - before < 50 * 10


def test_a_tree_is_let_go_where_no_further_walk_may_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "MANY", -1)
    settled, unsettled, function = _walked(
        "CREATE VIEW v AS SELECT a FROM t WHERE b = 1; CREATE VIEW w AS SELECT * FROM t;"
        " CREATE FUNCTION f(x int) RETURNS int AS 'SELECT x + 1' LANGUAGE sql"
    )
    assert (settled.state, unsettled.state, function.state) == ("final", "done", "done")
    assert settled.tree is not None
    assert len(list(settled.tree.walk())) < 5
    for statement in _walked("DECLARE @n int = 1; SELECT a INTO v FROM t WHERE b = @n", "tsql"):
        assert statement.state == "done", "where variables come round in a loop, it is walked again"


def test_a_statement_whose_tree_was_let_go_cannot_be_walked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "MANY", -1)
    batch = Batch(None)
    (statement,) = _walked("CREATE VIEW v AS SELECT a FROM t", batch=batch)
    with pytest.raises(AssertionError):
        batch.walk_again(statement)
    assert [write.output.names for write in statement.writes] == [["a"]]


def _walked(text: str, dialect: str = "postgres", batch: Batch | None = None) -> list[StatementState]:
    batch = Batch(None) if batch is None else batch
    options = Options(dialect=dialect)
    maker = ScriptMaker(Script("f.sql", text), options, macros_of([], options), [], batch.tree_cache)
    script = maker.parse(maker.render(None))
    batch.add(script)
    for statement in script.statements:
        batch.settle(statement)
    return script.statements


def test_trees_that_the_parser_gave_up_are_freed_while_scripts_are_parsed(
    monkeypatch: pytest.MonkeyPatch, uncollected: None
) -> None:
    monkeypatch.setattr(trees, "MANY", -1)
    scripts = [
        Script(f"{i}.sql", f"SELECT (a, ({i} + b)), f((c)) FROM `p.d.t{i}` WHERE (d) IN (1)") for i in range(300)
    ]

    def garbage() -> int:
        before = live_nodes()
        extract(scripts, Options(dialect="bigquery"))
        left = live_nodes() - before
        gc.collect()
        return left

    left = garbage()
    monkeypatch.setattr(collector, "GARBAGE_OF", 1_000)
    assert garbage() < left / 2


def test_objects_that_stay_count_as_old_after_the_garbage_among_them_was_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the collector visits all of them once more, as soon as it is on again."""
    monkeypatch.setattr(trees, "MANY", -1)
    monkeypatch.setattr(collector, "GARBAGE_OF", 100)
    with collector.uncollected():
        kept = extract([Script(f"{i}.sql", f"SELECT a FROM t{i} WHERE b IN (1)") for i in range(50)], Options())
        assert gc.get_objects(generation=1)
    assert not gc.get_objects(generation=1)
    assert len(kept.derivations) == 50
    gc.collect()


def test_the_tokens_of_one_window_are_all_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    tokenizer = lexer("postgres").tokenizer
    tokenize = tokenizer.tokenize

    def noted(text: str) -> list[Token]:
        sizes.append(len(text))
        return tokenize(text)

    monkeypatch.setattr(tokenizer, "tokenize", noted)
    monkeypatch.setattr(script, "WINDOW", 1_000)
    found = parse_script("SELECT a FROM t;\n" * 1_000, "postgres")
    assert len(found) == 1_000
    assert [(s.line, s.column) for s in found] == [(i + 1, 1) for i in range(1_000)]
    assert max(sizes) < 2_000


@pytest.mark.parametrize(
    "hidden", ["'a;\nb'", "3 /* a;\nb */", "$x$a;\nb$x$", '"a;\nb"'], ids=["string", "comment", "dollar", "name"]
)
def test_no_window_ends_inside_a_literal(hidden: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "WINDOW", 10)
    text = f"SELECT 1 AS a;\nSELECT 2, {hidden} AS b FROM t; SELECT 3;\nSELECT 4"
    assert [(s.status, s.line, s.column) for s in parse_script(text, "postgres")] == [
        ("parsed", 1, 1),
        ("parsed", 2, 1),
        ("parsed", 3, text.split("\n")[2].index("SELECT 3") + 1),
        ("parsed", 4, 1),
    ]


def test_an_open_quote_in_a_long_script_costs_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "WINDOW", 20)
    statements = parse_script("SELECT 1 AS one;\nSELECT 'a;\nSELECT 2;\nSELECT 3;", "postgres")
    assert [(s.status, s.line) for s in statements] == [("parsed", 1), ("failed", 2), ("parsed", 3), ("parsed", 4)]


# -- INSERTs of constants ---------------------------------------------------------------------------------------------


def derivations(text: str, dialect: str = "postgres") -> list[Derivation]:
    return list(run(text, dialect).derivations)


@pytest.mark.usefixtures("uncollected")
def test_a_dump_of_inserts_is_one_statement_a_table_seen_often() -> None:
    text = "CREATE TABLE t (a int, b text);\nCREATE TABLE u (c int);\n"
    text += "".join(
        f"INSERT INTO t VALUES ({i}, 'it''s; {i}');\nINSERT INTO u VALUES (-{i}), (NULL);\n" for i in range(500)
    )
    before = live_nodes()
    extraction = run(text)
    assert live_nodes() - before < 500
    inserts = [d for d in extraction.derivations if d.statement.kind == "insert"]
    assert [(d.target, d.statement.line, d.statement.count) for d in inserts] == [("t", 3, 500), ("u", 4, 500)]
    assert [[c.path for c in d.columns] for d in inserts] == [["a", "b"], ["c"]]
    assert (extraction.statements, extraction.understood) == (1002, 1002)


def test_statements_between_end_a_run() -> None:
    text = "INSERT INTO t (a) VALUES (1);\nDROP TABLE t;\nINSERT INTO t (a) VALUES (1);\nINSERT INTO t (a) VALUES (2)"
    found = derivations(text)
    assert [(d.mode, d.statement.line, d.statement.count) for d in found] == [("append", 3, 2)]
    text = "INSERT INTO t (a) VALUES (1);\nUSE other;\nINSERT INTO t (a) VALUES (1)"
    assert [d.target for d in derivations(text, "mysql")] == ["t", "other.t"]


@pytest.mark.parametrize(
    "values",
    ["(x)", "(now())", "((SELECT max(b) FROM u))", "(1) ON CONFLICT (a) DO UPDATE SET a = t.b", "(1) RETURNING a"],
)
def test_values_that_are_no_constants_are_read_whole(values: str) -> None:
    found = derivations(f"INSERT INTO t (a) VALUES (0);\nINSERT INTO t (a) VALUES {values}")
    assert [d.statement.line for d in found] == [1, 2]


def test_only_the_first_row_of_constants_is_parsed() -> None:
    rows = ", ".join(f"({i}, 'x{i}')" for i in range(1_000))
    (statement,) = parse_script(f"INSERT INTO t VALUES {rows}", "postgres")
    assert statement.tree is not None
    assert len(list(statement.tree.walk())) < 20
    assert statement.text.endswith("(999, 'x999')")
