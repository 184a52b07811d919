"""Dataform's SQLX files as SQL. Lineage of whole files: ``fixtures/lineage/bigquery/scripts.sql``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.capture.sql.templates.dataform import read_sqlx


def code(text: str, file: str = "definitions/a.sqlx") -> str:
    """A file as SQL, on one line."""
    return " ".join(read_sqlx(text, file).text.split())


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('${ref("t")}', "t"),
        ("${ref('s', 't')}", "s.t"),
        ('${ref({schema: "s", name: "t", database: "p-q"})}', "`p-q.s.t`"),
        ('${ctx.resolve("t")}', "t"),
        ("${self()}", "a"),
        ("${name()}", "a"),
        ("${incremental()}", "true"),
        ('${when(incremental(), "x = 1")}', "x = 1"),
        ('${when(a(b, c), `x in (${ref("t")}, "}")`, "y")}', 'x in (t, "}")'),
        ("${when(incremental(), self())}", "a"),
        ("${'plain'}", "plain"),
        ("${`b ${self()} c`}", "b a c"),
        ("${dataform.projectConfig.vars.x}", "${dataform.projectConfig.vars.x}"),
        ('${f.g("x")}', "f_g()"),
        ("${x + 1}", "x_1()"),
    ],
)
def test_expressions(expression: str, expected: str) -> None:
    assert (
        code(f"config {{ type: 'operations' }}\nDELETE FROM t WHERE {expression}") == f"DELETE FROM t WHERE {expected}"
    )


def test_names_stay_apart_from_words_before_them() -> None:
    assert code("SELECT 1 FROM${ref('t')} LEFT JOIN${ref('u')}") == "SELECT 1 FROM t LEFT JOIN u"
    assert code("SELECT a FROM pre_${ref('t')}") == "SELECT a FROM pre_t"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ('config { type: "table" }', "CREATE OR REPLACE TABLE a AS SELECT 1"),
        ('config { type: "view", schema: "s", name: "v" }', "CREATE OR REPLACE VIEW v AS SELECT 1"),
        ('config {\n  "type": "incremental",\n  assertions: { type: "x", name: "y" }\n}', "INSERT INTO a BY NAME SELECT 1"),
        ('config { type: "table", description: "a } and { name: \'z\'" }', "CREATE OR REPLACE TABLE a AS SELECT 1"),
        ('config { type: "assertion" }', "SELECT 1"),
        ('config { type: "operations" }', "SELECT 1"),
        ("", "SELECT 1"),
    ],
)  # fmt: skip
def test_the_query_of_a_file_is_stored_as_its_type_says(config: str, expected: str) -> None:
    assert (
        code(f"-- SELECT\n{config}\n/* WITH */\nSELECT 1").removeprefix("-- SELECT ").removeprefix("/* WITH */ ")
        == expected
    )


def test_operations_stand_around_the_query() -> None:
    text = 'pre_operations {\n  SET x = 1\n}\nconfig { type: "table" }\nSELECT 1\npost_operations { DROP TABLE ${ref("t")} }'
    assert code(text) == "; SET x = 1 ; CREATE OR REPLACE TABLE a AS SELECT 1 ; DROP TABLE t ;"


def test_dashes_divide_operations() -> None:
    assert code("DROP TABLE b\n---\nDROP TABLE c") == "DROP TABLE b ; DROP TABLE c"


def test_what_javascript_makes_is_told_of_once_a_function() -> None:
    read = read_sqlx('SELECT 1,\n ${f.g("x")},\n ${f.g("y")}, ${h()}', "a.sqlx")
    assert [(n.code, n.severity, n.message, n.file, n.line) for n in read.diagnostics] == [
        ("template", "warning", "what the JavaScript of f.g makes is not known", "a.sqlx", 2),
        ("template", "warning", "what the JavaScript of h makes is not known", "a.sqlx", 3),
    ]


_PIECES = st.lists(
    st.sampled_from(
        [
            "config {",
            'type: "table"',
            "}",
            "{",
            "\n",
            "js {",
            "${",
            "ref('t')",
            "`",
            '"',
            "when(a(), `",
            "SELECT 1",
            "---",
        ]
    ),
    max_size=14,
)


@settings(deadline=None)
@given(_PIECES)
def test_lines_hold_for_any_text(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert read_sqlx(text, "a.sqlx").text.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "${when(true,`" * 5000 + "`)}" * 5000,
        "${" + "when(true," * 5000 + "a" + ")" * 5000 + "}",
        "${`" * 5000,
        "${" * 9000,
    ],
)
def test_expressions_within_expressions_end_somewhere(text):
    assert read_sqlx(f"select {text} from t", "a.sqlx").diagnostics


def test_a_block_that_is_not_closed_is_said():
    found = read_sqlx('config { type: "table"\n\nconfig { }\nselect a from t', "a.sqlx")
    assert [(d.code, d.line) for d in found.diagnostics] == [("template", 1)]
    assert not read_sqlx('config { type: "table" }\nselect a from t', "a.sqlx").diagnostics
