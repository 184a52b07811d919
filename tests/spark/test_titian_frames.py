"""The log analysis of Titian (Interlandi et al., PVLDB 9(3), Figures 1, 5 to 7, 9, 10 and 12), as a program of DataFrames.

Lines of a log have an error code; a table has a description for each code; errors are counted by description. Codes 3
and 4 share a description; nothing in the log has code 5, and nothing describes code 7.
"""

from __future__ import annotations

import pytest
from recorders import own_recorder

import govtool.spark
from govtool.errors import UsageError

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

LOG = [
    "INFO 0 start",
    "ERROR 3 disk of node-1",
    "ERROR 4 disk of node-2",
    "INFO 0 heartbeat",
    "ERROR 3 disk of node-1",
    "ERROR 2 network of node-7",
    "ERROR 7 unknown",
]
CODES = [(2, "network failure"), (3, "disk failure"), (4, "disk failure"), (5, "power failure")]


@pytest.fixture(scope="module")
def program(spark, tmp_path_factory):
    """The program of Figure 1, its lines in a text file, its codes in Parquet: the capture and the counts."""
    from pyspark.sql import functions as F

    folder = tmp_path_factory.mktemp("titian")
    (folder / "log.txt").write_text("\n".join(LOG) + "\n", encoding="utf-8")
    spark.createDataFrame(CODES, "code int, description string").coalesce(1).write.parquet(str(folder / "codes"))
    with own_recorder():
        capture = govtool.spark.attach(spark, records=True, spool=str(folder / "spool"), store=str(folder / "store"))
        errors = spark.read.text(str(folder / "log.txt")).where("value like 'ERROR%'")
        codes = spark.read.parquet(str(folder / "codes"))
        pairs = errors.join(codes, F.split("value", " ")[1].cast("int") == codes.code)
        counts = pairs.groupBy("description").agg(F.count("*").alias("n"))
        assert sorted(map(tuple, counts.collect())) == [("disk failure", 3), ("network failure", 1)]
        yield capture.lineage(counts)


def lines(rows):
    return sorted(row["value"] for row in rows.df("log.txt").collect())


def codes(rows):
    return sorted(tuple(row) for row in rows.df("codes").collect())


def results(rows):
    table = rows.arrow()
    return sorted(zip(table["description"].to_pylist(), table["n"].to_pylist(), strict=True))


@pytest.mark.slow
def test_back_from_the_largest_count_to_the_lines_of_the_log(program):
    """Figure 5: the most frequent error, traced to the raw lines; two codes share its description."""
    back = program.where("n = 3").go_back_all()
    assert lines(back) == ["ERROR 3 disk of node-1", "ERROR 3 disk of node-1", "ERROR 4 disk of node-2"]
    assert codes(back) == [(3, "disk failure"), (4, "disk failure")]
    assert sorted((token.file, token.row) for token in back.ids("log.txt")) == [(0, 1), (0, 2), (0, 4)]
    assert {part.exactness for part in back.answer().inputs} == {"exact"}


@pytest.mark.slow
def test_a_count_that_is_not_there_has_no_lines(program):
    back = program.where("description = 'power failure'").go_back_all()
    assert (back.count(), list(back.ids())) == (0, [])
    assert back.go_next_all().count() == 0


@pytest.mark.slow
def test_one_boundary_at_a_time_in_any_order(program):
    """Figures 6 and 7: back step by step, a choice among what is there, and on to the results again."""
    pairs = program.where("description = 'disk failure'").go_back()
    assert sorted(pairs.arrow()["code"].to_pylist()) == [3, 3, 4]
    fours = pairs.where("code = 4")
    assert lines(fours.go_back()) == ["ERROR 4 disk of node-2"]
    assert codes(fours.go_back()) == [(4, "disk failure")]
    assert results(fours.go_next()) == [("disk failure", 3)]
    assert results(fours.go_back().go_next_all()) == [("disk failure", 3)]
    # The record at both ends is the same, yet it has more behind it than the choice.
    assert len(lines(fours.go_next().go_back_all())) == 3


@pytest.mark.slow
def test_on_from_a_line_of_the_log_to_the_counts(program):
    """Figure 9: forward, from where the program begins to its results."""
    lineage = program.lineage
    assert results(lineage.input("log.txt", "value like '%node-7'").go_next_all()) == [("network failure", 1)]
    assert lineage.input("log.txt", "value like '%unknown'").go_next_all().count() == 0
    assert results(lineage.input("codes", "code = 3").go_next_all()) == [("disk failure", 3)]
    assert lineage.input("codes", "code = 5").go_next_all().count() == 0
    with pytest.raises(UsageError):
        lineage.input("codes", "cod = 3")


@pytest.mark.slow
def test_raw_rows_take_any_transformation(program):
    """Figure 10: work goes on with the raw lines, as with any DataFrame."""
    back = program.where("n > 1").go_back_all().df("log.txt")
    nodes = back.selectExpr("substring_index(value, ' ', -1) AS node").groupBy("node").count()
    assert sorted(map(tuple, nodes.collect())) == [("node-1", 2), ("node-2", 1)]


@pytest.mark.slow
def test_the_program_runs_again_without_bad_lines(program):
    """Figure 12: selective replay."""
    answer = program.replay(exclude={"log.txt": "value like 'ERROR 3%'"})
    assert [(row.before[1], row.after[1]) for row in answer.changed] == [(3, 1)]
    assert (answer.gone, answer.new) == ((), ())
    gone = program.replay(exclude={"codes": "code = 2"})
    assert [row[0] for row in gone.gone] == ["network failure"]
