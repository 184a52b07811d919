"""Hard cases of traces of RDD programs, and what is stated where a trace cannot be exact."""

from __future__ import annotations

import threading
from operator import add

import pytest

import govtool.spark
from govtool.errors import EngineError, UnknownNameError, UsageError


def where(tracked, value):
    return tracked.get_lineage().where(lambda each: each == value)


def test_jobs_run_the_rdds_of_spark_with_the_functions_as_they_are(lineage, spark):
    """Word count has the same plan as without lineage: nothing is put between."""
    lines = ["a b", "b"]
    tracked = lineage.parallelize(lines, 2).flatMap(str.split).map(lambda word: (word, 1)).reduceByKey(add)
    plain = spark.sparkContext.parallelize(lines, 2).flatMap(str.split).map(lambda word: (word, 1)).reduceByKey(add)
    without_numbers = [
        [line.split("[")[0] for line in rdd.toDebugString().decode().splitlines()] for rdd in (tracked, plain)
    ]
    assert without_numbers[0] == without_numbers[1]
    assert type(tracked.rdd) is type(plain)


def test_keys_that_are_none_and_keys_that_equal_each_other(lineage):
    pairs = lineage.parallelize([(None, 1), (1, 2), (1.0, 3), (True, 4), (None, 5), ("1", 6)], 3)
    sums = pairs.reduceByKey(add)
    assert sorted(map(str, sums.values().collect())) == ["6", "6", "9"]
    assert where(sums, (1, 9)).go_back_all().collect() == [(1, 2), (1.0, 3), (True, 4)]
    assert where(sums, (None, 6)).go_back_all().collect() == [(None, 1), (None, 5)]


@pytest.mark.parametrize("key", [float("nan"), (float("nan"), "a")], ids=["NaN", "a tuple with NaN"])
def test_keys_that_do_not_equal_themselves_are_stated(lineage, key):
    sums = lineage.parallelize([(key, 1), (2.0, 2)], 1).reduceByKey(add)
    back = sums.get_lineage().where(lambda pair: pair[1] == 1).go_back_all()
    assert [pair[1] for pair in back.collect()] == [1]
    assert back.exactness == "superset"
    assert "NaN" in back.reasons[0]


def test_equal_records_are_different_records(lineage):
    doubled = lineage.parallelize(["x", "x", "y"], 2).map(lambda word: (word, 1)).mark()
    back = doubled.get_lineage().where(lambda pair: pair[0] == "x").go_back()
    assert [each.record for each in back.ids()] == [0, 1]
    assert back.where(lambda word: word == "x").count() == 2


def test_partitions_may_be_empty_and_records_few(lineage):
    empty = lineage.parallelize([], 3).map(lambda x: (x, 1)).reduceByKey(add)
    assert empty.collect() == []
    assert empty.get_lineage().go_back_all().collect() == []
    one = lineage.parallelize([7], 4).map(lambda x: (x, 1)).reduceByKey(add)
    assert where(one, (7, 1)).go_back_all().collect() == [7]


def test_files_without_a_line_are_verified(lineage, tmp_path):
    (tmp_path / "empty").touch()
    lines = lineage.textFile(str(tmp_path / "empty"))
    assert lines.getNumPartitions() == 0
    assert lines.get_lineage().verify()


def test_a_result_is_verified_under_an_equal_key(lineage):
    joined = lineage.parallelize([(0, "a"), (-0.0, "b"), (False, "c")], 1).join(lineage.parallelize([(0, 1)], 1), 1)
    for value in "abc":
        assert joined.get_lineage().where(lambda pair, value=value: pair[1][0] == value).verify()


def test_an_rdd_meets_itself(lineage):
    pairs = lineage.parallelize([(1, "a"), (1, "b"), (2, "c")], 2)
    joined = pairs.join(pairs)
    assert where(joined, (1, ("a", "b"))).go_back().collect() == [(1, "a"), (1, "b")]
    assert where(joined, (1, ("a", "a"))).go_back().collect() == [(1, "a")]
    both = pairs.union(pairs)
    position = where(both, (2, "c"))
    assert position.count() == 2
    assert position.go_back().collect() == [(2, "c")]


def test_unions_of_unions_stay_small(lineage, monkeypatch):
    from govtool.spark.rdd import log

    monkeypatch.setattr(log, "MAX_FEEDS", 3)
    rdd = lineage.parallelize([1], 1)
    for _ in range(3):
        rdd = rdd.union(rdd)
    assert len(rdd._node.feeds) <= 3
    assert rdd.count() == 8
    assert rdd.get_lineage().go_back().collect() == [1] * 4
    back = rdd.get_lineage().go_back_all()
    assert back.collect() == [1]
    assert back.go_next_all().collect() == [1] * 8


def test_functions_that_change_their_argument(lineage):
    grown = (
        lineage.parallelize([[1], [2]], 1)
        .map(lambda items: items.append(0) or items)
        .filter(lambda items: items[1] == 0)
    )
    assert grown.collect() == [[1, 0], [2, 0]]
    assert where(grown, [1, 0]).go_back().collect() == [[1]]


def test_ranking_is_exact_where_records_differ(lineage):
    ranked = lineage.parallelize([30, 10, 20, 20], 2).sortBy(lambda x: x).zipWithIndex()
    first = ranked.get_lineage().where(lambda pair: pair[1] == 0).go_back_all()
    assert (first.collect(), first.exactness) == ([10], "exact")
    second = ranked.get_lineage().where(lambda pair: pair[1] == 1).go_back_all()
    assert (second.collect(), second.exactness) == ([20, 20], "superset")
    numbered = lineage.parallelize(["b", "a", "a"], 2).zipWithIndex()
    third = numbered.get_lineage().where(lambda pair: pair[1] == 2).go_back_all()
    assert ([each.record for each in third.ids()], third.exactness) == ([2], "exact")
    assert third.go_next_all().collect() == [("a", 2)]


def test_a_sample_is_drawn_again_as_it_was(lineage):
    for replaced in (False, True):
        drawn = lineage.parallelize(range(40), 3).map(lambda x: x % 5).sample(replaced, 0.5)
        taken = drawn.collect()
        position = drawn.get_lineage().go_back_all()
        assert position.exactness == "exact"
        assert {value % 5 for value in position.collect()} == set(taken)
        assert position.count() <= len(taken)


def test_a_function_of_a_partition_is_a_black_box_unless_declared(lineage):
    numbers = lineage.parallelize([1, 2, 3, 4], 2)

    def doubled(records):
        for each in records:
            if each > 1:
                yield each * 2

    boxed = numbers.mapPartitions(doubled)
    back = where(boxed, 4).go_back_all()
    assert (back.collect(), back.exactness) == ([1, 2], "superset")
    assert "mapPartitions at test_rdd_traces.py" in back.reasons[0]
    boxed.count()
    on = numbers.get_lineage().where(lambda x: x == 4).go_next_all()
    assert (on.collect(), on.exactness) == ([6, 8], "superset")
    declared = numbers.mapPartitions(govtool.spark.per_record(doubled))
    assert declared.collect() == [4, 6, 8]
    back = where(declared, 4).go_back_all()
    assert (back.collect(), back.exactness) == ([2], "exact")


def test_a_function_of_a_partition_behind_a_shuffle(lineage):
    counted = lineage.parallelize(range(6), 2).repartition(2).mapPartitions(lambda records: [len(list(records))])
    assert sum(counted.collect()) == 6
    back = counted.get_lineage().go_back_all()
    assert (sorted(back.collect()), back.exactness) == ([0, 1, 2, 3, 4, 5], "superset")


def test_other_methods_work_and_are_stated(lineage):
    numbers = lineage.parallelize([1, 2, 3, 4], 2)
    assert (numbers.sum(), numbers.first(), numbers.take(2), numbers.reduce(add)) == (10, 1, [1, 2], 10)
    assert numbers.getNumPartitions() == 2
    assert numbers.cache() is numbers
    assert numbers.map(lambda x: (x % 2, x)).countByKey() == {0: 2, 1: 2}
    halves = numbers.randomSplit([0.5, 0.5], seed=7)
    assert sorted(halves[0].collect() + halves[1].collect()) == [1, 2, 3, 4]
    zipped = numbers.zip(numbers.map(str))
    back = where(zipped, (2, "2")).go_back_all()
    assert (back.collect(), back.exactness) == ([1, 2, 3, 4], "coarse")
    assert "zip at test_rdd_traces.py" in back.reasons[0]
    with pytest.raises(AttributeError):
        numbers.no_such_method()
    with pytest.raises(UsageError, match="cannot be run again"):
        back.replay()


def test_rdds_of_spark_are_sources_when_they_meet_tracked_ones(lineage, spark):
    plain = spark.sparkContext.parallelize([(1, "x")], 1)
    joined = lineage.parallelize([(1, "a")], 1).join(plain)
    assert where(joined, (1, ("a", "x"))).go_back_all().collect() == [(1, "a"), (1, "x")]


def test_a_function_that_is_not_deterministic_is_found_out(lineage, tmp_path):
    def drifting(_):
        marker = tmp_path / "ran"
        first = not marker.exists()
        marker.touch()
        return [1] if first else [1, 2]

    drawn = lineage.parallelize([0], 1).flatMap(drifting)
    assert drawn.collect() == [1]
    back = drawn.get_lineage().go_back_all()
    assert back.exactness == "break"
    assert "gave 2 records where collect had 1" in back.reasons[0]


def test_an_input_that_changed_is_refused(lineage, tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / "in" / name).write_text(f"{name} 1\n{name} 2\n")
    words = lineage.textFile(str(tmp_path / "in")).map(lambda line: (line[-1], 1)).reduceByKey(add)
    assert sorted(words.collect()) == [("1", 2), ("2", 2)]
    (tmp_path / "in" / "b").write_text("c 1\nc 2\nc 3\n")
    back = where(words, ("1", 2)).go_back_all()
    assert back.collect() == ["a 1"]
    assert back.exactness == "break"
    assert f"{tmp_path / 'in' / 'b'} was changed or removed" in back.reasons[0]


def test_files_that_were_written_are_traced_by_line(lineage, tmp_path):
    out = str(tmp_path / "out")
    pairs = lineage.parallelize([("x", "1\n2"), ("y", "3")], 2).values()
    pairs.saveAsTextFile(out)
    position = lineage.get_lineage(out).where(lambda line: line == "2")
    assert position.go_back_all().collect() == [("x", "1\n2")]
    assert position.exactness == "exact"
    (tmp_path / "out" / "part-00000").write_text("other\n")
    assert lineage.get_lineage(out).where(lambda line: line == "2").exactness == "break"
    with pytest.raises(UnknownNameError, match="no tracked RDD was written"):
        lineage.get_lineage("elsewhere")


def test_accumulators_count_the_program_and_not_the_trace(lineage, spark):
    seen = spark.sparkContext.accumulator(0)

    def counting(x):
        seen.add(1)
        return x

    kept = lineage.parallelize([1, 2, 3], 2).map(counting)
    kept.collect()
    assert seen.value == 3
    assert where(kept, 2).go_back_all().collect() == [2]
    assert seen.value == 3


def test_functions_that_cannot_be_pickled_fail_as_in_spark(lineage):
    lock = threading.Lock()
    held = lineage.parallelize([1], 1).map(lambda x: (x, lock))
    with pytest.raises(Exception, match=r"pickle|serializ"):
        held.collect()


@pytest.mark.long
def test_many_keys_are_joined(lineage, monkeypatch):
    from govtool.spark.rdd import conditions

    monkeypatch.setattr(conditions, "MAX_BROADCAST", 2)
    sums = (
        lineage.parallelize([(n % 6, n) for n in range(12)], 3)
        .reduceByKey(add)
        .join(lineage.parallelize([(n, n) for n in range(6)]))
    )
    position = sums.get_lineage().where(lambda pair: pair[0] > 0)
    back = position.go_back_all()
    assert sorted(back.collect()) == sorted([*((n % 6, n) for n in range(12) if n % 6), *((n, n) for n in range(1, 6))])
    assert sorted(back.go_next_all().collect()) == sorted(position.collect())
    assert sorted(back.replay(without=True).collect()) == [(0, (6, 0))]


def test_positions_run_once(lineage, spark):
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    sums = lineage.parallelize([(1, 1), (1, 2)], 2).reduceByKey(add)
    before = scheduler.numTotalJobs()
    position = sums.get_lineage().where(lambda pair: pair[0] == 1).go_back_all()
    assert scheduler.numTotalJobs() == before
    position.places()
    ran = scheduler.numTotalJobs()
    position.places()
    assert scheduler.numTotalJobs() == ran


def test_a_position_is_shown_and_explained(lineage, capsys):
    sums = lineage.parallelize([("a", 1), ("\x1b[31mb", 2)], 2).reduceByKey(add)
    position = sums.get_lineage().where(lambda pair: pair[1] == 2).go_back_all()
    position.show()
    shown = capsys.readouterr().out
    assert "1 records · exact" in shown
    assert "\x1b" not in shown
    assert position.explain().splitlines()[0] == "all records → where → back to the sources"


def test_functions_typed_into_a_shell(lineage):
    """They have no source; within the process nothing needs it."""
    shell = {"__name__": "__main__"}
    exec(compile("limit = 1\nkeep = lambda x: x > limit\ndef twice(x):\n    return x * 2\n", "<stdin>", "exec"), shell)
    doubled = lineage.parallelize([1, 2, 3], 2).filter(shell["keep"]).map(shell["twice"])
    assert doubled.collect() == [4, 6]
    assert where(doubled, 6).go_back_all().collect() == [3]


def test_large_results_are_counted_and_not_digested():
    from govtool.spark.rdd.worker import is_small

    assert is_small([("word", 1)] * 500, 2_000)
    assert is_small([], 2_000)
    assert not is_small([("word", 1)] * 1_000, 2_000)
    assert not is_small([[1] * 10**6], 2_000)
    assert not is_small([{n: n for n in range(5_000)}], 2_000)
    assert not is_small(["x" * 10**6], 2_000)


def test_a_program_that_fails_on_the_traced_records_alone_says_so(lineage):
    """A function of whole partitions is given empty ones where the other records are left out."""
    ends = lineage.parallelize(range(1, 10), 3).mapPartitions(lambda own: (lambda all_: [all_[0], all_[-1]])(list(own)))
    assert where(ends, 4).go_back_all().collect() == [4, 5, 6]
    with pytest.raises(EngineError, match=r"fails on these records alone: IndexError: list index out of range$"):
        where(ends, 4).verify()
