"""Parts of the recording of rows without Spark: results that are recognized, packed ids, numbers of files, refusals."""

from __future__ import annotations

import array
import gc
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pytest

from govtool.spark.live.driver import collected
from govtool.spark.live.driver.collected import CollectedRows
from govtool.spark.live.records import file_numbers, layouts, packing
from govtool.spark.live.records.carried import NotCarried
from govtool.spark.live.records.layouts import SortsInMemory, WriteLayout, layout_of, named_places


class _Frame:
    """A DataFrame whose actions return what it was made with."""

    def __init__(self, result):
        self.result = result
        plan = SimpleNamespace(analyzed=lambda: "plan")
        self._jdf = SimpleNamespace(queryExecution=lambda: plan)

    def collect(self):
        return self.result

    def toPandas(self):
        return self.result

    def toLocalIterator(self):
        return iter(self.result)


@pytest.fixture
def known():
    """What is known of results, and the frame class whose actions it hears of."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install govtool[test]")
    rows = CollectedRows()
    kind = type("Frame", (_Frame,), {})
    rows.patch(kind)
    return rows, kind


def _results():
    return [
        [(1, "a"), (2, "b")],
        [(1, ["x"])],
        [],
        pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
        pa.table({"a": [1, 2]}),
    ]


@pytest.mark.parametrize("result", _results(), ids=["rows", "nested", "none", "pandas", "arrow"])
def test_a_result_itself_is_known(known, result):
    rows, kind = known
    assert not rows.any
    returned = kind(result).collect()
    assert rows.any
    assert returned is result
    assert rows.plan_of(returned) == "plan"
    copy = returned.copy() if hasattr(returned, "copy") else returned.slice(0)
    assert rows.plan_of(copy) is None


def _replace(rows):
    rows[1] = (3, "c")


def _swap(rows):
    rows[0], rows[1] = rows[1], rows[0]


def _kind(rows):
    rows[0] = [1, "a"]


@pytest.mark.parametrize("change", [_replace, _swap, _kind, list.pop, list.clear])
def test_rows_that_changed_are_not_known(known, change):
    rows, kind = known
    returned = kind([(1, "a"), (2, "b")]).collect()
    change(returned)
    assert rows.plan_of(returned) is None


def test_a_list_within_a_row_that_changed_is_noticed(known):
    rows, kind = known
    returned = kind([(1, ["x"])]).collect()
    returned[0][1].append("y")
    assert rows.plan_of(returned) is None


def _value(frame):
    frame.loc[1, "a"] = 7


def _rename(frame):
    frame.columns = ["b", "a"]


def _column(frame):
    frame["c"] = 1


def _type(frame):
    frame["a"] = frame["a"].astype("float64")


def _object(frame):
    frame["b"] = [[1], [2]]  # has no digest


@pytest.mark.parametrize("change", [_value, _rename, _column, _type, _object])
def test_a_frame_of_pandas_that_changed_in_place_is_not_known(known, change):
    rows, kind = known
    returned = kind(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})).toPandas()
    assert rows.plan_of(returned) == "plan"
    change(returned)
    assert rows.plan_of(returned) is None


def test_another_object_in_the_place_of_a_result_is_not_known(known):
    """Addresses are used again: of 200 frames made one after the other many have that of the first."""
    rows, kind = known
    frame = pd.DataFrame({"a": [1]})
    kind(frame).toPandas()
    place = id(frame)
    del frame
    gc.collect()
    for _ in range(200):
        other = pd.DataFrame({"a": [1]})
        assert rows.plan_of(other) is None, id(other) == place
        del other


def test_rows_that_are_known_keep_their_address(known):
    rows, kind = known
    kind([(1,)]).collect()
    for _ in range(200):
        assert rows.plan_of([(1,)]) is None


def test_what_cannot_be_recognized_leaves_the_source_unknown(known, monkeypatch):
    rows, kind = known
    assert rows.plan_of(kind([(1,)]).toLocalIterator()) is None
    assert rows.any
    assert rows.plan_of(iter([(1,)])) is None
    monkeypatch.setattr(collected, "MAX_ROWS", 1)
    monkeypatch.setattr(collected, "MAX_TEXT", 20)
    monkeypatch.setattr(collected, "MAX_VALUES", 1)
    large = [[(1,), (2,)], [("x" * 30,)], pd.DataFrame({"a": [1, 2]})]
    assert [rows.plan_of(kind(each).collect()) for each in large] == [None, None, None]
    assert rows.plan_of(kind([(1,)]).collect()) == "plan"


def test_the_newest_results_are_known(known, monkeypatch):
    rows, kind = known
    monkeypatch.setattr(collected, "MAX_KNOWN", 2)
    kept = [kind([(n,)]).collect() for n in range(3)]
    assert [rows.plan_of(each) for each in kept] == [None, "plan", "plan"]


def _pairs(data):
    values = array.array("q", data).tolist()
    return list(zip(values[::2], values[1::2], strict=True))


def test_written_rows_are_packed_in_their_order(monkeypatch):
    first = 3 << packing.PARTITION_BITS
    rows = [(7, None), (7, 1), (None, -5)]
    ((partition, count, packed),) = packing.numbered(2)(3, rows)
    assert (partition, count) == (3, [((), 3)])
    assert [_pairs(each) for each in packed] == [[(first, 7), (first + 1, 7)], [(first + 1, 1), (first + 2, -5)]]
    assert list(packing.numbered(2)(0, [])) == [(0, [((), 0)], [b"", b""])]
    monkeypatch.setattr(packing, "MAX_PAIRS", 2)
    assert list(packing.numbered(2)(3, rows)) == [(3, [((), 3)], [None, None])]
    assert next(packing.numbered(2)(3, rows[:2]))[1] == [((), 2)]


def test_rows_of_folders_are_packed_one_folder_after_the_other():
    first = 3 << packing.PARTITION_BITS
    rows = [(7, "b", 0), (8, "a", 0), (9, "b", 0), (None, "b", 1), (4, "a", 0)]
    ((_, places, packed),) = packing.numbered(1)(3, rows)
    assert places == [(("b", 0), 2), (("a", 0), 2), (("b", 1), 1)]
    assert [_pairs(each) for each in packed] == [[(first, 7), (first + 1, 9), (first + 2, 8), (first + 3, 4)]]


def test_rows_of_groups_are_packed_once(monkeypatch):
    rows = [(5, 1, 2), (4, 1, None), (5, 1, 3), (5, 1, 2)]
    (packed,) = packing.keyed(2)(rows)
    assert [_pairs(each) for each in packed] == [[(4, 1), (5, 1)], [(5, 2), (5, 3)]]
    monkeypatch.setattr(packing, "MAX_PAIRS", 1)
    assert list(packing.keyed(2)(rows)) == [[None, None]]


# Published values of the reference implementation, and of stripes with a tail.
@pytest.mark.parametrize(
    ("data", "seed", "value"),
    [
        (b"", 0, 0xEF46DB3751D8E999),
        (b"a", 0, 0xD24EC4F1A98C6E5B),
        (b"abc", 0, 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1),
    ],
)
def test_hashes_are_those_of_xxh64(data, seed, value):
    assert file_numbers.xxhash64(data, seed) == value


def test_files_have_numbers_of_their_own():
    paths = [f"file:/data/part-{n:05d}.parquet" for n in range(3000)]
    seed, found = file_numbers.numbers_of([*paths, *paths])
    assert sorted(found.values()) == paths
    assert max(found) < 1 << file_numbers.FILE_BITS
    assert f"xxhash64(_metadata.file_path, {seed})" in file_numbers.file_expression(seed)


def test_paths_that_share_a_number_get_another_seed(monkeypatch):
    monkeypatch.setattr(file_numbers, "FILE_BITS", 3)
    seed, found = file_numbers.numbers_of(["a", "b", "c", "d"])
    assert seed > 0
    assert sorted(found.values()) == ["a", "b", "c", "d"]
    assert file_numbers.numbers_of(map(str, range(9))) is None


def test_paths_of_a_listing_are_spelled_as_spark_does():
    text = "file:///a%20b/é.parquet s3a://bucket/c,d hdfs:///e"
    util = SimpleNamespace(StringUtils=SimpleNamespace(join=lambda *_: text))
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(util=util))))
    assert file_numbers.listed_paths(jvm, None) == ["file:/a%20b/é.parquet", "s3a://bucket/c,d", "hdfs:/e"]
    text = ""
    assert file_numbers.listed_paths(jvm, None) == []


class _Seq:
    """A Scala Seq of strings."""

    def __init__(self, *values):
        self.values = values

    def isEmpty(self):
        return not self.values

    def nonEmpty(self):
        return bool(self.values)

    def mkString(self, separator):
        return separator.join(self.values)


def _column(name, kind="int", padded=False):
    return SimpleNamespace(
        name=lambda: name,
        dataType=lambda: SimpleNamespace(catalogString=lambda: kind),
        metadata=lambda: SimpleNamespace(contains=lambda key: padded and key == "__CHAR_VARCHAR_TYPE_STRING"),
    )


class _Catalog:
    """Tables of a session: their partitions, buckets, and what these are sorted by."""

    tables = {  # noqa: RUF012
        "parts": (_Seq("p"), None), "buckets": (_Seq(), (4, _Seq("b"), _Seq())),
        "sorted": (_Seq("p"), (4, _Seq("b"), _Seq("s"))), "plain": (_Seq(), None),
        "texts": (_Seq(), (4, _Seq("p"), _Seq())), "padded": (_Seq("p"), None),
        "beside": (_Seq("b"), None), "numbers": (_Seq("b"), None),
        "both": (_Seq("b"), (4, _Seq("a"), _Seq())),
    }  # fmt: skip

    def getTableMetadata(self, name):
        parts, buckets = self.tables[name]
        count, columns, order = buckets or (0, None, None)
        spec = SimpleNamespace(
            numBuckets=lambda: count, bucketColumnNames=lambda: columns, sortColumnNames=lambda: order
        )
        return SimpleNamespace(
            partitionColumnNames=lambda: parts,
            bucketSpec=lambda: SimpleNamespace(isDefined=lambda: buckets is not None, get=lambda: spec),
            schema=lambda: SimpleNamespace(
                fields=lambda: [_column("a"), _column("b"), _column("p", "string", padded=name in ("padded", "beside"))]
            ),
        )


def _plan(*columns):
    output = SimpleNamespace(size=lambda: len(columns), apply=lambda place: columns[place])
    return SimpleNamespace(output=lambda: output)


PLAN = _plan(_column("x"), _column("y"), _column("P"))
FLAT = WriteLayout()


@pytest.mark.parametrize(
    ("method", "table", "settings", "expected"),
    [
        ("insertInto", "parts", [], WriteLayout(("p",), columns=("P",))),
        ("insertInto", "buckets", [("mode", ("overwrite",))], WriteLayout((), (4, ("y",)))),
        ("insertInto", "numbers", [], WriteLayout(("b",), columns=("y",), swaps_nulls=True)),
        ("insertInto", "beside", [], WriteLayout(("b",), columns=("y",), swaps_nulls=True)),
        ("insertInto", "both", [], WriteLayout(("b",), (4, ("x",)), ("y",))),
        ("insertInto", "padded", [], "by CHAR or VARCHAR"),
        ("insertInto", "texts", [], "another type in the query"),
        ("insertInto", "sorted", [], "the buckets of the table are sorted"),
        ("saveAsTable", "buckets", [("mode", ("Append",))], "columns of the table are not those of the query"),
        ("saveAsTable", "parts", [("mode", ("Append",))], WriteLayout(("p",), columns=("P",))),
        ("parquet", "folder", [("partitionBy", (_Seq("p", "X"),))], WriteLayout(("p", "X"), columns=("P", "x"))),
        ("saveAsTable", "new", [("partitionBy", (_Seq("p", "X"),))], WriteLayout(("P", "x"), columns=("P", "x"))),
        ("parquet", "folder", [("partitionBy", (_Seq("x"),))], WriteLayout(("x",), columns=("x",), swaps_nulls=True)),
        ("saveAsTable", "new", [("bucketBy", (3, "k", _Seq("l")))], WriteLayout((), (3, ("k", "l")))),
        ("saveAsTable", "new", [("bucketBy", (3, "k", _Seq())), ("sortBy", ("l", _Seq()))], "sortBy sorts"),
        ("saveAsTable", "new", [("clusterBy", ("k", _Seq()))], "clusterBy sorts"),
        ("saveAsTable", "parts", [("mode", ("append",)), ("mode", ("overwrite",))], FLAT),
        ("saveAsTable", "absent", [("mode", ("append",))], FLAT),
        ("insertInto", "plain", [], FLAT),
        ("parquet", "parts", [("mode", ("append",))], FLAT),
    ],
)
def test_layouts_of_writes(method, table, settings, expected):
    parser = SimpleNamespace(parseTableIdentifier=lambda name: name)
    state = SimpleNamespace(catalog=_Catalog, sqlParser=lambda: parser)
    session = SimpleNamespace(_jsparkSession=SimpleNamespace(sessionState=lambda: state))
    if isinstance(expected, WriteLayout):
        assert layout_of(session, PLAN, settings, method, (table,)) == expected
        return
    with pytest.raises(NotCarried, match=expected):
        layout_of(session, PLAN, settings, method, (table,))


@pytest.mark.parametrize(("spilled", "held"), [((0, 0), True), ((64, 0), False), ((0, 64), False), (None, False)])
def test_a_sort_on_disk_is_seen(monkeypatch, spilled, held):
    """Only the stages of jobs that began since count; None: there is none."""
    jobs = [5]
    scheduler = SimpleNamespace(numTotalJobs=lambda: jobs[0])
    context = SimpleNamespace(sc=lambda: SimpleNamespace(dagScheduler=lambda: scheduler))
    session = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=context))

    def stage(number):
        memory, disk = spilled if number == 16 else (0, 0)
        return SimpleNamespace(memoryBytesSpilled=lambda: memory, diskBytesSpilled=lambda: disk)

    def job(number):
        stages = [2 * number, 2 * number + 1, 16]
        return SimpleNamespace(stageIds=lambda: SimpleNamespace(size=lambda: 3, apply=lambda place: stages[place]))

    monkeypatch.setattr(layouts, "stages_and_blocks", lambda _: SimpleNamespace(job=job, lastStageAttempt=stage))
    sorts = SortsInMemory(session)
    jobs[0] += 0 if spilled is None else 2
    assert sorts.held() is held


def test_places_are_named_as_spark_does():
    names = SimpleNamespace(getPartitionPathString=lambda name, value: f"{name}={value or 'none'}")
    catalog = SimpleNamespace(ExternalCatalogUtils=names)
    spark = SimpleNamespace(sql=SimpleNamespace(catalyst=SimpleNamespace(catalog=catalog)))
    session = SimpleNamespace(_jvm=SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(spark=spark))))
    both = WriteLayout(("k", "l"), (3, ("b",)), ("k", "l"))
    counted = [(0, ("x", None, 2), 5), (1, ("x", None, 0), 1)]
    assert named_places(session, both, counted) == [(0, "k=x/l=none", 2, 5), (1, "k=x/l=none", 0, 1)]
    assert named_places(session, FLAT, [(0, (), 0), (1, (), 3)]) == [(0, "", -1, 0), (1, "", -1, 3)]
    swapped = WriteLayout(("k",), columns=("k",), swaps_nulls=True)
    assert named_places(session, swapped, [(0, ("1",), 2)]) == [(0, "k=1", -1, 2)]
    with pytest.raises(NotCarried, match="swaps rows"):
        named_places(session, swapped, [(0, ("1",), 2), (1, (None,), 1)])
    with pytest.raises(NotCarried, match="more than 10,000"):
        named_places(session, both, counted * (layouts.MAX_FOLDERS // 2 + 1))
