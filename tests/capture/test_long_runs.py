"""Long runs of one text, where others may write them, take time in proportion: each of these took minutes, or had no end.

Nothing is timed here: what takes the square of 200,000 characters does not end in the time of a test.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from govtool.api.lineage import lineage
from govtool.capture.dbt.configured import facts_of_calls
from govtool.capture.dbt.files import Folder
from govtool.capture.dbt.stated import with_docs
from govtool.capture.logs.effects import effects, outer_words, reads_only
from govtool.capture.prov.document import ProvContent, read_document
from govtool.capture.spark.plantext.read import read_plan
from govtool.capture.spark.plantext.tree import PlanTextError
from govtool.capture.sql.properties.waiver_comments import waivers_of
from govtool.capture.sql.scripts.clients.client import clean
from govtool.capture.sql.scripts.clients.mysql import with_conditional_code
from govtool.capture.sql.templates.dataform import read_sqlx
from govtool.capture.sql.templates.macros import macros_in
from govtool.capture.sql.templates.placeholders import fill
from govtool.capture.sql.templates.properties import StatedFact
from govtool.errors import UsageError
from govtool.query.changes.types import same_type
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.from_sql import condition_from_sql, from_sql, table
from govtool.records.plan.types import Field, Scalar, Struct
from govtool.spark.live.job.cleaned import clean_setting, clean_url

COUNT = 100_000
PLAN = """== Physical Plan ==
* Project (2)
+- Scan parquet  (1)


(1) Scan parquet
Output [2]: [id#9, name#10]
Location: InMemoryFileIndex [file:/tmp/src]
ReadSchema: struct<id:int,name:string>

(2) Project
Output [2]: [id#9, upper(name#10){run} AS name#36]
Input [2]: [id#9, name#10]
"""


@pytest.mark.parametrize("unit", ["/*a*/\n", ";--aa", ";--a ", "-- a\n", "( ", "#a\n", "/*a ", ";"])
def test_statements_of_logs(unit: str) -> None:
    text = unit * COUNT
    assert reads_only(text) is False
    assert outer_words(f"select 1{text}")[0] == "select"
    assert effects(f"{text}\nselect 1", "postgres") == ()


def test_words_in_comments_begin_no_statement() -> None:
    assert outer_words("select 1;-- a; drop b\ninsert into c") == ("select", "insert")


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("GO" + " " * COUNT + "x", "tsql"),
        ("select 1 \\g " * COUNT + ";", "postgres"),
        ("select 1 \\gexec " * COUNT + ";", "postgres"),
        ("warnings" + "\t" * COUNT + "x", "mysql"),
        ("tee a" + " " * COUNT + "(", "mysql"),
        ("COPY a\n" * COUNT, "postgres"),
        ("COPY a FROM STDIN\n" * COUNT, "postgres"),
        ("COPY a FROM STDIN;\n" * COUNT, "postgres"),
    ],
)
def test_commands_of_clients(text: str, dialect: str) -> None:
    assert len(clean(text, dialect).text) == len(text)


@pytest.mark.parametrize("text", ["/**a\n" * COUNT, "'" + "\\'" * COUNT, '"' + '\\"' * COUNT, "`a" * COUNT])
def test_conditional_comments_of_mysql(text: str) -> None:
    assert with_conditional_code(text) == text


@pytest.mark.parametrize("text", ["/*a " * COUNT, "'" + "\\'" * COUNT, "''" * COUNT + "'"])
def test_parameters(text: str) -> None:
    assert fill(text + "{x}").startswith(text)


UNITS = (
    "$",
    "`",
    "a<",
    "/a->",
    "<a>",
    " ",
    "a.",
    "(",
    "[",
    "a#1",
    "Map(",
    "-",
    "'",
    "a ",
    "], [",
    "a=",
    "\n,",
    "\nArguments: CatalogTable(",
)


@pytest.mark.parametrize("unit", UNITS)
def test_plans_of_spark(unit: str) -> None:
    for plan in (PLAN.replace("{run}", unit * COUNT), PLAN.replace("file:/tmp/src", unit * COUNT)):
        with contextlib.suppress(PlanTextError):
            read_plan(plan)


LINES = (
    "HashAggregate(keys=[a#1{run}], functions=[b#2)",
    "SortMergeJoin [a#1{run}, b#2",
    "SortMergeJoin [a#1], [b#2], x{run}, (",
    "Generate explode(a#1){run}, [b#2",
    "Generate explode(a#1){run}, [b#2]",
    "TakeOrderedAndProject(limit=1, orderBy=[a#1{run}], output=[a#1)",
    "FileScan parquet [a#1] ReadSchema: struct<a:int>{run}",
)
IN_LINES = (
    "], functions=[",
    "], output=[",
    "a], ",
    "], [",
    "], x(",
    "], x",
    ", [",
    ", true",
    ", [a], true",
    "), true, [",
    "PartitionFilters: [",
)


@pytest.mark.parametrize("unit", IN_LINES)
def test_plans_in_lines(unit: str) -> None:
    for line in LINES:
        with contextlib.suppress(PlanTextError):
            read_plan(line.replace("{run}", unit * 20_000) + "\n+- Scan parquet x\n")


@pytest.mark.parametrize("place", ["id#9", "(2)", "[2]:"])
def test_numbers_that_python_does_not_read(place: str) -> None:
    with pytest.raises(PlanTextError, match="thousand digits"):
        read_plan(PLAN.replace(place, place.replace("9", "9" * 5_000).replace("2", "2" * 5_000)))


@pytest.mark.parametrize("unit", ["{#", "{% macro a() %}", "{% macro a(", "{{ config(", "{{ config() ", "{% docs a %}"])
def test_tags_of_dbt(unit: str, tmp_path: Path) -> None:
    text = f"macro {unit * COUNT}"
    assert macros_in(text) == {}
    (tmp_path / "a.sql").write_text(text)
    assert list(facts_of_calls([Folder(tmp_path)], tmp_path)) == []
    (tmp_path / "a.md").write_text(text)
    stated = StatedFact("model", ("a",), None, "description", "{{ doc('a') }}", "a.yml")
    assert list(with_docs([stated], [Folder(tmp_path)])) == [stated]


@pytest.mark.parametrize("dialect", ["", "bigquery", "mysql", "tsql"])
@pytest.mark.parametrize("unit", ["\\", "'\\", "/*a ", "'''a", "-- govtool: allow X\n", "/* govtool: allow X */\n"])
def test_waivers(unit: str, dialect: str) -> None:
    text = f"select 'govtool {unit * (COUNT // 5)}"
    assert list(waivers_of(text, dialect, "a.sql", (), "s")) == []
    text = f"select 1 -- govtool: allow X\n{unit * (COUNT // 5)}"
    assert list(waivers_of(text, dialect, "a.sql", ["t"], "s"))


def test_comments_of_settings() -> None:
    assert read_sqlx("config { " + "// " * COUNT + "x\n}\nselect 1", "a.sqlx").text


@pytest.mark.parametrize("comment", ["-" * COUNT, "-- " * COUNT, "/**/" * COUNT])
def test_comments_behind_commas_and_keywords(comment: str) -> None:
    relations = {"t": table("t", Struct((Field("a", Scalar("int")),)))}
    assert from_sql(f"select a, {comment}\n a as {comment}\n b from t", relations)
    with pytest.raises(UsageError, match="missing beside a comma"):
        from_sql(f"select a, {comment}\n from t", relations)
    with pytest.raises(UsageError, match="something is missing"):
        from_sql(f"select sum(a) over (order by a rows {comment}\n between 1 preceding) from t", relations)


def test_types_and_settings() -> None:
    assert not same_type("decimal(" + " " * COUNT + "x", "int")
    assert clean_url("jdbc:x:" + ".a" * COUNT).startswith("jdbc:x:")
    assert clean_setting("spark.driver.extraJavaOptions", "a-" * COUNT + " -Dx.secret=tops3cret").endswith("secret=***")


@pytest.mark.parametrize("digits", ["9" * 39, "9" * 5_000, "9" * 5_000 + ".5", "0." + "9" * 5_000])
@pytest.mark.parametrize(
    "query",
    [
        "select {} as x from t", "select -{} as x from t", "select a from t limit {}", "select a from t group by {}",
        "select a from t order by {}", "select cast(a as decimal({}, 2)) as x from t", "select substr(a, {}) as x from t",
        "select sum(1) over (order by a rows between {} preceding and current row) as x from t",
    ],
)  # fmt: skip
def test_numbers_that_spark_has_no_decimal_for(query: str, digits: str) -> None:
    relations = {"t": table("t", Struct((Field("a", Scalar("string")),)))}
    with pytest.raises(UsageError) as refused:
        from_sql(query.format(digits), relations)
    assert refused.value.code in ("usage.sql-meaning", "usage.sql-syntax")
    with pytest.raises(UsageError):
        condition_from_sql(f"n > {digits}", [Attribute(1, "n", Scalar("long"), True)])


def test_the_largest_numbers_are_read() -> None:
    columns = [Attribute(1, "n", Scalar("long"), True)]
    for text in ("9" * 38, f"{'9' * 37}.5", "1e308"):
        assert condition_from_sql(f"n > {text}", columns)
    with pytest.raises(UsageError, match="out of the range of double"):
        condition_from_sql("n > 1e309", columns)


@pytest.mark.parametrize("operator", ["or", "and"])
def test_long_chains_of_conditions(operator: str) -> None:
    columns = [Attribute(1, "n", Scalar("long"), True)]
    text = f" {operator} ".join(f"n = {number}" for number in range(5_000))
    found = condition_from_sql(text, columns)
    assert (type(found).__name__, getattr(found, "name", "")) == ("Call", operator)
    relations = {"t": table("t", Struct((Field("n", Scalar("long")),)))}
    assert from_sql(f"select n from t where {text}", relations)


@pytest.mark.parametrize(
    "text",
    [
        "n > " + "-" * 3_000 + "1",
        "n > 1" + " + 1" * 5_000,
        "not " * 5_000 + "n > 1",
        "(" * 900 + "n" + ")" * 900 + " > 1",
    ],
)
def test_conditions_that_are_nested_too_deeply(text: str) -> None:
    with contextlib.suppress(UsageError):
        condition_from_sql(text, [Attribute(1, "n", Scalar("long"), True)])


@pytest.mark.parametrize("form", ["json", "provn"])
def test_prefixes_of_prov(form: str) -> None:
    """The library compares each with all others: 20,000 of them took half a minute."""
    names = [f"e{number}" for number in range(20_000)]
    body = {"prefix": {name: f"http://e/{name}" for name in names}, "bundle": {"b": {"prefix": {"a": "http://a/"}}}}
    text = json.dumps(body) if form == "json" else "document\n" + "".join(f"prefix {n} <http://{n}/>\n" for n in names)
    found = ProvContent()
    assert not read_document(text.encode(), "a", form, found)
    assert "more than 1,000 prefixes" in found.notes[0].message
    assert not read_document(("document" + "\n" * COUNT).encode(), "a", "provn", ProvContent())


@pytest.mark.parametrize(
    "unit", ["{{ m#() }} ", "select {{ m#() }};", "select {{ m#() }};\n", "{% call m#() %}{% endcall %}"]
)
def test_calls_of_unknown_macros(unit: str, tmp_path: Path) -> None:
    text = "".join(unit.replace("#", str(number)) for number in range(3_000))
    (tmp_path / "a.sql").write_text(f"create table x as select a from t;\n{text}")
    found = lineage(paths=[str(tmp_path / "a.sql")])
    assert any("m2999" in str(note.message) for note in found.diagnostics)
