"""``govtool why --sql`` and ``govtool whatif delete --sql`` from the command line, and the same from Python."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import govtool as package
from govtool.app.why.csv_types import inferred, read_csv
from govtool.cli.main import main
from govtool.errors import UsageError

CUSTOMERS = "_tok,id,city\nc1,1,Paris\nc2,2,Rome\nc3,3,Paris\nc4,4,\n"
ORDERS = "_tok,cust,amount\no1,1,10.5\no2,1,20\no3,3,30\no4,2,\n"
JOINED = "select city from orders join customers on cust = id"


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "customers.csv").write_text(CUSTOMERS, encoding="utf-8")
    (folder / "orders.csv").write_text(ORDERS, encoding="utf-8")
    return folder


@pytest.fixture
def run(tmp_path, data, capsys):
    def call(command, sql, *arguments):
        (tmp_path / "q.sql").write_text(sql, encoding="utf-8")
        capsys.readouterr()
        code = main([*command.split(), "--sql", str(tmp_path / "q.sql"), "--data", str(data), *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def schema(name):
    return json.loads((Path(__file__).parents[3] / "docs" / "schemas" / f"{name}.json").read_text(encoding="utf-8"))


def rows(run, sql, *arguments):
    code, out, err = run("why", sql, "-f", "json", *arguments)
    assert code == 0, err
    answer = json.loads(out)
    jsonschema.validate(answer, schema("why-1"))
    return {tuple(row["values"]): row for row in answer["tuples"]}


def test_rows_of_equal_values_are_one_with_the_sum_of_their_annotations(run):
    found = rows(run, JOINED, "--as", "polynomial,how,why,why-minimal,which,count,bool")
    paris = found[("Paris",)]
    assert paris["polynomial"] == paris["how"] == "c1*o1 + c1*o2 + c3*o3"
    assert paris["multiplicity"] == paris["count"] == 3
    assert paris["bool"] is paris["present"] is True
    assert sorted(map(sorted, paris["why"])) == [["c1", "o1"], ["c1", "o2"], ["c3", "o3"]]
    assert sorted(paris["which"]) == ["c1", "c3", "o1", "o2", "o3"]


def test_candidates_have_a_polynomial_and_no_lineage(run):
    found = rows(run, "select city, count(*) as n from customers group by city having n > 1")
    assert found[("Rome", 1)]["present"] is False
    assert "which" not in found[("Rome", 1)]
    assert found[("Paris", 2)]["aggregates"] == {"n": "COUNT(c1⊗1 + c3⊗1)"}


def test_an_outer_join_is_shown_without_the_semiring_that_does_not_fit(run):
    query = "select city, amount from customers left join orders on cust = id"
    code, out, err = run("why", query)
    assert code == 0, err
    assert "which is left out: 'which' is not defined for rows" in " ".join(out.split())
    assert set(rows(run, query)[("Paris", 10.5)]) >= {"polynomial", "count"}
    code, _, err = run("why", query, "--as", "which")
    assert (code, "usage.semiring" in err) == (2, True)


def test_values_of_tokens(run, tmp_path):
    tokens = ["c1", "c2", "c3", "c4", "o1", "o2", "o3", "o4"]
    (tmp_path / "cost.json").write_text(json.dumps({t: n + 1 for n, t in enumerate(tokens)}), encoding="utf-8")
    (tmp_path / "prob.json").write_text(json.dumps(dict.fromkeys(tokens, 0.5)), encoding="utf-8")
    files = [f"--values={name}={tmp_path / file}.json" for name, file in (("cost", "cost"), ("trust", "cost"), ("prob", "prob"))]  # fmt: skip
    found = rows(run, JOINED, "--as", "cost,trust,prob,shapley,banzhaf,responsibility", *files)
    paris, rome = found[("Paris",)], found[("Rome",)]
    assert (paris["cost"], paris["trust"]) == (6, 3)
    assert paris["prob"] == pytest.approx(1 - (1 - 0.375) * 0.75)
    assert rome["shapley"] == rome["banzhaf"] == {"c2": 0.5, "o4": 0.5}
    assert sum(paris["shapley"].values()) == pytest.approx(1)
    assert paris["responsibility"] == {"c1": 0.5, "c3": 0.5, "o1": 1 / 3, "o2": 1 / 3, "o3": 0.5}


@pytest.mark.parametrize(
    ("sql", "arguments", "message"),
    [
        ("select cty from customers", (), "unknown column 'cty'"),
        ("select city from custmers", (), "unknown relation 'custmers'"),
        ("select city from customers tablesample (5 rows)", (), "does not cover"),
        ("select city as a, a || 'x' as b from customers", (), "does not cover the alias a in the SELECT"),
        ("select soundex(city) from customers", (), "does not cover SOUNDEX\n"),
        ("select id from customers except all select cust from orders", ("--as", "why"), "a difference"),
        ("select city from customers group by city having count(*) > 1", ("--as", "cost,why"), "cost needs a value"),
        ("select city from customers limit 1", ("--as", "why"), "a limit"),
        ("select city from customers", ("--as", "wich"), "no semiring wich"),
        ("select city from customers", ("--key", "customers=city"), "no city"),
        ("select city from customers", ("--key", "orders=cust"), "not unique: 4 records, 3 values"),
        ("select city from customers", ("--key", "orders=nothing"), "no column 'nothing'"),
        ("select city from customers", ("--key", "nothing=x"), "no relation 'nothing'"),
    ],
)
def test_mistakes_are_refused_with_what_is_wrong(run, sql, arguments, message):
    code, out, err = run("why", sql, *arguments)
    assert code == 2
    assert out == ""
    assert message in err


def test_a_mistake_in_the_query_is_shown_below_it(run):
    _, _, err = run("why", "select city,\n  cty from customers")
    assert "q.sql:2:3" in err
    assert "^" in err
    assert "city" in err.splitlines()[-1]
    _, _, err = run("why", "select id,\n  first(city) from customers group by id")
    assert "does not cover FIRST" in err
    assert "q.sql:2:3" in err


def test_files_that_are_no_relations(run, data):
    (data / "plain.csv").write_text("1,2\n3,4\n", encoding="utf-8")
    assert "has no header" in run("why", "select a from plain")[2]
    (data / "plain.csv").write_bytes(b"\0\1")
    assert "has no whole header" in run("why", "select a from plain")[2]
    (data / "plain.csv").write_text("_tok,a\nc1,4\n", encoding="utf-8")
    assert "two records have the same token: 'c1'" in run("why", "select city from customers")[2]
    (data / "plain.csv").write_text("a,A\n1,4\n", encoding="utf-8")
    assert "two columns are named" in run("why", "select a from Plain")[2]
    (data / "orders.parquet").write_bytes(b"no")
    assert "two files of relation" in run("why", "select city from customers")[2]


def test_files_that_are_no_relations_do_no_harm_where_the_query_does_not_name_them(run, data):
    (data / "plain.csv").write_text("1,2\n3,4\n", encoding="utf-8")
    (data / "other.parquet").write_bytes(b"no")
    code, out, _ = run("why", "select city from customers")
    assert code == 0
    assert "city" in out
    code, _, err = run("whatif delete", "select city from customers", "plain:0")
    assert code == 2
    assert "not read, as they are no relations:" in err
    assert "plain.csv" in err


def test_types_are_those_that_spark_infers(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(
        "i,l,d,f,day,at,b,s,n,big\n"
        '1,3000000000,1.5,7,2024-01-31,2024-01-31 10:00:00,true,a,,12345678901234567890\n,1,NaN,2.0,,,FALSE,"",,1\n',
        encoding="utf-8",
    )
    table = read_csv(file)
    kinds = [pa.int32(), pa.int64(), pa.float64(), pa.float64(), pa.date32(), pa.timestamp("us", "UTC"), pa.bool_()]
    assert [field.type for field in table.schema][:7] == kinds
    assert table.column("s").to_pylist() == ["a", None]  # as Spark: nullValue is the empty text, quoted or not
    assert table.column("n").to_pylist() == [None, None]
    assert table.schema.field("big").type == pa.decimal128(20, 0)
    for blanks in ("", "  \t"):
        file.write_text(f'a,b,c\np\n{blanks}\n"q\r\n",""\nr,"a ""b"", c",x', encoding="utf-8", newline="")
        rows = {"a": ["p", "q\r\n", "r"], "b": [None, None, 'a "b", c'], "c": [None, None, "x"]}
        assert read_csv(file).to_pydict() == rows
    for cell, problem in ((r'"a\"b"', "behind a backslash"), ('"in"side', "text behind the quote")):
        file.write_text(f'a,b\n"1\n2",x"y\n{cell},2\n', encoding="utf-8")
        with pytest.raises(UsageError, match=problem) as quotes:
            read_csv(file)
        assert quotes.value.location == f"{file}:4"
    file.write_text('a,b\n1\n"2\n",3,4\n', encoding="utf-8")
    with pytest.raises(UsageError, match="3 cells, and the header has 2") as uneven:
        read_csv(file)
    assert uneven.value.location == f"{file}:3"
    for text, problem in (("", "it is empty"), ("\na\n", "first line is empty"), ("a,\n", "column 2 has no name")):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match=problem):
            read_csv(file)


def test_a_short_line_behind_a_cell_too_long_for_python_is_refused_without_its_number(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(f'a,b\n1,"{"x" * 2_000}"\n2\n', encoding="utf-8")
    limit = csv.field_size_limit(1_000)
    try:
        with pytest.raises(UsageError, match="not a CSV file"):
            read_csv(file)
    finally:
        csv.field_size_limit(limit)


@pytest.mark.parametrize(
    ("cells", "hour"),
    [
        (["2024-01-31T10:00:00Z", "2024-02-29 10:00:00.5"], 10),
        (["2024-01-31T10:00:00+02:00", "2024-01-31 10:00"], 8),
        (["2024-01-31", "2024-01-31 11:00:00"], 0),
        (["2024-13-31 10:00"], None),
    ],
)
def test_moments_are_read_as_spark_reads_them(cells, hour):
    found = inferred(pa.array([*cells, None], pa.string()))
    if hour is None:
        assert found.type == pa.string()
    else:
        assert found.type == pa.timestamp("us", "UTC")
        assert (found.to_pylist()[0].hour, found.to_pylist()[-1]) == (hour, None)


AT = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cell", "moment"),
    [  # as Spark 4.3 reads them, session time zone UTC
        ("2020-1-1", AT),
        ("2020-01", AT),
        (" 2020-01-01 ", AT),
        ("2020-01-01 1:00", AT + timedelta(hours=1)),
        ("2020-01-01 00:00:00.123456789", AT + timedelta(microseconds=123456)),
        ("2020-01-01T00:00:00+0100", AT - timedelta(hours=1)),
        ("2020-01-01T00:00:00+1", AT - timedelta(hours=1)),
        ("2020-01-01T00:00:00-18:00", AT + timedelta(hours=18)),
        ("2020-01-01T00:00:00UTC", AT),
        ("2020-01-01T00:00:00GMT+1", AT - timedelta(hours=1)),
        ("2020-01-01T00:00:00 Europe/Paris", AT - timedelta(hours=1)),
        ("2020-01-01T00:00:00+01:5", AT - timedelta(minutes=65)),
        ("2020-01-01T00:00:00-010030", AT + timedelta(minutes=60, seconds=30)),
        ("2020-01-01T00:00:00+00100", None),
        ("2020-01-01T00:00+01:00", None),  # a zone stands behind seconds
        ("2020-01-01T00:00:00+19:00", None),
        ("2020-02-30 00:00:00", None),
        ("2020-01-01T25:00:00", None),
        ("2020-01-01T00:00:00Nowhere/Else", None),
        ("12:00", None),  # Spark puts it on the day of the query
    ],
)
def test_moments_in_all_forms_that_spark_casts(cell, moment):
    found = inferred(pa.chunked_array([pa.array([cell, None, "2020-01-01T00:00:00Z"])]))
    expected = [cell, None, "2020-01-01T00:00:00Z"] if moment is None else [moment, None, AT]
    assert found.to_pylist() == expected


def test_records_without_tokens_are_named_by_their_row(run, data):
    pq.write_table(pa.table({"k": [7, 8]}), data / "plain.parquet")
    assert rows(run, "select k from plain")[(8,)]["which"] == ["plain:1"]
    assert rows(run, "select k from plain", "--key", "plain=k")[(8,)]["which"] == ["8"]


def deleted(run, sql, *arguments):
    code, out, err = run("whatif delete", sql, "-f", "json", *arguments)
    assert code == 0, err
    jsonschema.validate(json.loads(out), schema("whatif-rows-1"))
    return json.loads(out)


def test_statuses_of_a_deletion(run):
    sql = "select city, count(*) as n, sum(amount) as total from orders join customers on cust = id group by city"
    answer = deleted(run, sql, "o1", "c2")
    assert answer["schema"] == "whatif-rows/1"
    found = {row["before"][0]: (row["status"], row.get("after")) for row in answer["tuples"]}
    assert found == {"Paris": ("recomputed", ["Paris", 2, 50.0]), "Rome": ("deleted", None)}
    assert answer["gains"] == []


def test_a_filter_of_an_aggregate_leaves_out_plain_values_beside_computed_ones(data):
    """UNION puts rows whose value is plain and rows whose value is computed into one column."""
    (data / "r.csv").write_text("_tok,v\na,5\nb,7\nc,1\n", encoding="utf-8")
    query = (
        "SELECT count(*) FILTER (WHERE n = 1) AS c, sum(n) FILTER (WHERE n < 3) AS s "
        "FROM (SELECT v AS n FROM r UNION ALL SELECT count(*) AS n FROM r)"
    )
    (row,) = package.whatif_delete(query, data, ["c"], mode="propagate").to_dict()["tuples"]
    assert row == {"before": [1, 1], "status": "recomputed", "after": [0, 2]}


def test_auto_replays_what_is_unknown_and_only_that(run):
    sql = "select id, rank() over (order by id) as n from customers"
    left = deleted(run, sql, "c1", "--mode", "propagate")
    assert [row["status"] for row in left["tuples"]].count("unknown") == 3
    whole = deleted(run, sql, "c1")
    assert whole["replayed"]
    found = {row["before"][0]: (row["status"], row.get("after")) for row in whole["tuples"]}
    assert found == {
        1: ("deleted", None),
        2: ("recomputed", [2, 1]),
        3: ("recomputed", [3, 2]),
        4: ("recomputed", [4, 3]),
    }
    assert not deleted(run, "select id from customers", "c1")["replayed"]
    assert deleted(run, "select id from customers order by id limit 2", "c1")["gains"] == [[3]]


def test_several_deletions_are_a_line_each(run, tmp_path):
    (tmp_path / "d.jsonl").write_text('["o1"]\n\n["o1", "o2", "o3"]\n', encoding="utf-8")
    code, out, _ = run("whatif delete", JOINED, "--from", tmp_path / "d.jsonl", "-f", "json")
    assert code == 0
    first, second = map(json.loads, out.splitlines())
    assert [row["status"] for row in first["tuples"]].count("deleted") == 1
    assert [row["status"] for row in second["tuples"]].count("deleted") == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("o9",), "no relation has a record 'o9'"),
        (("o1", "o1"), "is gone already"),
        ((), "no record is named"),
        (("o1", "--mode", "guess"), "no mode guess"),
        (("o1", "--from", "x.jsonl"), "both tokens and --tokens"),
    ],
)
def test_mistaken_deletions_are_refused(run, arguments, message):
    code, _, err = run("whatif delete", JOINED, *arguments)
    assert code == 2
    assert message in err


def test_cells_know_where_they_were_copied_from(run):
    sql = "select city, cust, count(*) as n from orders join customers on cust = id group by city, cust"
    found = rows(run, sql, "--as", "where")[("Paris", 1, 2)]
    assert found["where"] == {"city": ["customers.c1.city"], "cust": ["orders.o1.cust", "orders.o2.cust"], "n": []}
    assert found["where_eq"]["cust"] == ["customers.c1.id", "orders.o1.cust", "orders.o2.cust"]


def test_the_same_from_python(data):
    answer = package.why(JOINED, data, semirings="which")
    assert sorted(sorted(row.annotations["which"]) for row in answer.tuples) == [
        ["c1", "c3", "o1", "o2", "o3"],
        ["c2", "o4"],
    ]
    assert package.whatif_delete(JOINED, data, "o4").counts == {"kept": 3, "deleted": 1}
    assert package.why(JOINED, data, semirings="polynomial").to_arrow().num_rows == 2


@pytest.mark.parametrize("expression", ["1 / 0", "cust / 0", "cust % 0", "cust div 0"])
def test_a_division_by_zero_is_an_error_as_in_spark(data, expression, monkeypatch):
    """DuckDB would give NULL; without Spark the query cannot be evaluated."""
    from govtool.app.records import engines as record_engines
    from govtool.app.why.rows import why
    from govtool.errors import EngineError

    every = record_engines.engines
    monkeypatch.setattr(record_engines, "engines", lambda kind: [each for each in every(kind) if each.name == "DuckDB"])
    with pytest.raises(EngineError, match="division by zero"):
        why(f"select {expression} as z from orders", str(data), ["count"])
    found = why(f"select {expression.replace('0', 'nullif(1, 1)')} as z from orders", str(data), ["count"])
    assert {row.values for row in found.tuples} == {(None,)}


@pytest.mark.parametrize("option", ["--policy=pack:gdpr", "--exclude=a.b", "--today=2026-01-01", "--fail-on=breaks"])
def test_options_of_columns_are_refused_for_records(run, option):
    code, _, err = run("whatif delete", JOINED, "o1", option)
    assert code == 2
    assert f"{option.partition('=')[0]} is for columns" in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"o1": 1' + "0" * 400 + "}", "more digits"),
        ('{"o1": 9007199254740993}', "more digits"),
        ('{"o1": 1e400}', "no finite number"),
        ('{"o1": NaN}', "the cost of o1 is no finite number: nan"),
        ('{"o1": true}', "the cost of o1 is no finite number: True"),
        ('{"o1": "1"}', "the cost of o1 is no finite number: 1"),
        ('{"o1": 1, "o2": 1, "o1": 2}', "two values of o1"),
        ("[1]", "an object of numbers"),
    ],
)
def test_values_that_are_not_computed_with_as_they_stand_are_refused(run, tmp_path, text, message):
    (tmp_path / "cost.json").write_text(text, encoding="utf-8")
    code, _, err = run("why", "select cust from orders", "--as", "cost", "--values", f"cost={tmp_path / 'cost.json'}")
    assert code == 2
    assert message in err
    assert "cost.json" in err


def test_a_probability_out_of_bounds_is_named(run, tmp_path):
    file = tmp_path / "prob.json"
    file.write_text('{"o1": 0.5, "o2": 1.5}', encoding="utf-8")
    code, _, err = run("why", "select cust from orders", "--as", "prob", "--values", f"prob={file}")
    assert code == 2
    assert "the probability of o2 is 1.5" in err
    assert "prob.json" in err


@pytest.mark.parametrize(
    ("query", "column"),
    [
        ("select max_by(city, id) from customers", 8),
        ("select id, first( city) from customers group by id", 12),
        ("select foo(id) from customers", 8),
    ],
)
def test_the_caret_is_below_the_function(run, query, column):
    code, _, err = run("why", query)
    assert code == 2
    assert f":1:{column}" in err


@pytest.mark.parametrize(
    "query",
    [
        "select id from customers except select count(*) + 10 from orders",
        "select id from customers where id < 3 union all select cast(null as bigint) where false",
        "select cast(id as decimal(20, 2)) as id from customers",
    ],
)
def test_cells_keep_their_origins_through_casts_that_keep_the_number(run, query):
    found = rows(run, query, "--as", "where")
    assert found[1 if "decimal" not in query else "1.00",]["where"] == {"id": ["customers.c1.id"]}


WORLDS = [
    ("sum(v) = 2000000000", 0.25),  # not the 2000000001 of a alone, close as it is
    ("sum(v) < 2000000001", 0.5),
    ("sum(v) = 2000000001", 0.25),
    ("avg(v) > 1000000000", 0.25),
    ("cast(sum(v) as decimal(12, 1)) = 2000000000.0", 0.25),
    ("sum(cast(v as decimal(12, 1))) * 2 = 4000000000", 0.25),
    ("max(v) - min(v) = 2000000002", 0.25),
    ("coalesce(sum(v), 7) = 7", 0.25),
]


@pytest.mark.parametrize(("condition", "chance"), WORLDS)
def test_whole_numbers_are_compared_exactly_in_possible_worlds(run, data, condition, chance):
    (data / "v.csv").write_text("_tok,v\na,2000000001\nb,-1\n", encoding="utf-8")
    (data / "chance.json").write_text('{"a": 0.5, "b": 0.5}', encoding="utf-8")
    words = ("--as", "prob", "--values", f"prob={data / 'chance.json'}")
    found = rows(run, f"select 1 as one from v having {condition}", *words)
    assert found[1,]["prob"] == chance


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("cast(avg(v) as int) = 1", "casts that change a value"),
        ("cast(sum(v) as string) = '3'", "casts that change a value"),
        ("max(s) > '5'", "values that are no finite numbers"),  # as texts 10 < 9
        ("max(f) > 1", "values that are no finite numbers"),
        ("sum(v) * 10000000000000000 > 5", "numbers of more than 15 digits"),
        ("sum(v) / 2 > 0", "conditions with /"),
    ],
)
def test_what_worlds_do_not_compute_exactly_is_refused(run, data, condition, reason):
    (data / "v.csv").write_text("_tok,v,s,f\na,1,10x,NaN\nb,2,9x,1.5\n", encoding="utf-8")
    code, _, err = run("why", f"select 1 as one from v having {condition}", "--as", "shapley")
    assert code == 2, err
    assert f"not computed over {reason}" in err


@pytest.mark.parametrize(
    ("condition", "error"), [("true", "0.091"), ("not exists (select 1 from others where others.x = many.x)", "0.18")]
)
def test_the_error_of_samples_counts_tokens_that_stand_against_a_row(run, data, condition, error):
    """A token adds from 0 to 1 to a row, and from -1 to 1 where it may take it away."""
    (data / "many.csv").write_text("x\n" + "".join(f"{n % 2}\n" for n in range(22)), encoding="utf-8")
    (data / "others.csv").write_text("x\n1\n", encoding="utf-8")
    code, out, _ = run("why", f"select distinct 1 as one from many where {condition}", "--as", "shapley", "-f", "json")
    assert code == 0
    assert json.loads(out)["notes"] == [f"shapley is sampled where a row has more than 20 tokens: ±{error} (99%)"]


def test_two_keys_of_one_relation_are_refused(run):
    code, _, err = run("why", "select cust from orders", "--key", "orders=cust", "--key", "orders=amount")
    assert (code, "two keys of orders" in err) == (2, True)


def test_keys_of_floats_are_named_whole(run, data):
    """Ids are floats where a NULL was among them once; they are told apart beyond six digits."""
    (data / "seen.csv").write_text("id,v\n1234567.0,1\n1234568.0,2\n0.12345678,3\n1e20,4\n", encoding="utf-8")
    found = rows(run, "select v from seen", "--key", "seen=id", "--as", "which")
    assert [found[v,]["which"] for v in (1, 2, 3, 4)] == [["1234567"], ["1234568"], ["0.12345678"], ["1e+20"]]


def test_a_folder_of_parquet_files_is_a_relation_and_nested_columns_are_read(tmp_path):
    kind = pa.struct([("x", pa.int32())])
    for number, rows in enumerate(([1], [], [2, 3])):
        part = tmp_path / "big.parquet" / f"part-{number}.parquet"
        part.parent.mkdir(exist_ok=True)
        cells = pa.array([{"x": row} for row in rows], kind)
        pq.write_table(pa.table({"k": pa.array(rows, pa.int64()), "s": cells}), part)
    (tmp_path / "big.parquet" / "_SUCCESS").touch()
    answer = package.why("select k, s.x from big where s.x > 1", tmp_path, semirings=["polynomial"])
    assert {row.values: row.annotations["polynomial"] for row in answer.tuples} == {(2, 2): "big:1", (3, 3): "big:2"}
    (tmp_path / "big.parquet" / "d=1").mkdir()
    with pytest.raises(UsageError, match="partitions are not covered"):
        package.why("select k from big", tmp_path)
