"""``spark.read.format("govtool")`` and ``df.write.format("govtool")``."""

from __future__ import annotations

import pytest

import govtool.spark
from govtool.app.ingest.sql import ingest_sql
from govtool.app.ingest.sql_options import SqlRequest
from govtool.app.versions.index import open_index
from govtool.query.changes.impact import impact
from govtool.store import Changes, Fragment, Store

VIEWS = """
CREATE VIEW stg.users AS SELECT id, lower(email) AS email FROM crm.users WHERE deleted_at IS NULL;
CREATE TABLE mart.audience AS
SELECT u.email, count(*) AS orders FROM stg.users u JOIN shop.orders o ON o.user_id = u.id GROUP BY u.email;
"""


@pytest.fixture(scope="module")
def session(spark):
    return govtool.spark.register(spark)


@pytest.fixture
def uri(tmp_path, monkeypatch):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    return str(tmp_path / "store")


@pytest.fixture
def store(uri, tmp_path):
    (tmp_path / "etl").mkdir()
    (tmp_path / "etl" / "views.sql").write_text(VIEWS)
    store = Store.init(uri)
    ingest_sql(store, SqlRequest(paths=(str(tmp_path / "etl"),), dialect="postgres"))
    return store


def read(session, uri, table, **options):
    return session.read.format("govtool").options(table=table, **options).load(uri)


def test_edges_are_those_of_the_graph(session, store, uri):
    index = open_index(store, store.head())
    rows = read(session, uri, "edges").collect()
    reported = {
        (r.source_dataset, r.source_column, r.target_dataset, r.target_column, r.kind, tuple(r.functions)) for r in rows
    }
    assert len(rows) == index.edge_count
    assert reported == {
        (*index.ref(index.edge_source[e]), *index.ref(index.edge_target[e]), index.kind(e).label, index.functions(e))
        for e in range(index.edge_count)
    }
    assert ("crm.users", "email", "stg.users", "email", "transformation", ("lower",)) in reported
    assert {(r.file, r.line) for r in rows if r.target_dataset == "mart.audience"} == {("views.sql", 3)}


def test_nodes_are_those_of_the_graph(session, store, uri):
    index = open_index(store, store.head())
    rows = read(session, uri, "nodes").collect()
    assert {(r.node, r.dataset, r.column) for r in rows} == {(n, *index.ref(n)) for n in range(index.node_count)}
    assert {r.dataset_kind for r in rows if r.dataset == "stg.users"} == {"view"}


def test_edges_join_their_evidence_and_the_tables_of_the_sources_are_there(session, store, uri):
    edges, evidence = read(session, uri, "edges"), read(session, uri, "evidence")
    pairs = edges.join(evidence, "derivation").select(edges.fingerprint, evidence.fingerprint).collect()
    assert len(pairs) == edges.count()
    assert all(a == b for a, b in pairs)
    assert {r.statements for r in read(session, uri, "coverage").collect()} == {2}
    assert read(session, uri, "derivations").count() == evidence.count()


def test_a_partition_is_a_fragment(session, uri, tmp_path):
    from govtool.app.spark_source import tables

    store = Store.init(uri)
    parquet = [_rows_as_parquet([{"n": i}, {"n": i + 10}]) for i in range(5)]
    store.commit(
        Changes(add=tuple(Fragment(f"s{i}", "numbers", data, 2) for i, data in enumerate(parquet))),
        message="",
        author="",
        batch="b",
    )
    frame = read(session, uri, "numbers")
    assert frame.rdd.getNumPartitions() == 5
    assert sorted(r.n for r in frame.collect()) == sorted([*range(5), *range(10, 15)])
    assert tables.cuts("numbers", tables.resolve(uri, None, None), []) != []


def _rows_as_parquet(rows):
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    "where",
    [
        "source_dataset = 'stg.users'",
        "target_dataset IN ('stg.users', 'nowhere')",
        "target_dataset = 'nowhere'",
        "kind LIKE 'fil%'",
        "kind NOT IN ('read', 'join')",
        "reason IS NULL AND line > 2",
        "NOT star AND arm = 0",
        "NOT (reason = 'x')",
        "array_contains(functions, 'lower')",
    ],
)
def test_pushed_filters_change_no_answer(session, store, uri, where):
    from govtool.app.spark_source import PUSHDOWN

    pushed = sorted(map(str, read(session, uri, "edges").where(where).collect()))
    whole = read(session, uri, "edges").cache()
    whole.count()
    assert pushed == sorted(map(str, whole.where(where).collect()))
    whole.unpersist()
    assert session.conf.get(PUSHDOWN) == "true"


def test_filters_are_pushed_down_to_the_partitions(session, uri):
    from govtool.app.spark_source import tables

    store = Store.init(uri)
    rows = {s: _rows_as_parquet([{"source": s, "n": 1}]) for s in ("a", "b", "c")}
    store.commit(
        Changes(add=tuple(Fragment(s, "numbers", data, 1) for s, data in rows.items())),
        message="",
        author="",
        batch="b",
    )
    frame = read(session, uri, "numbers").where("source = 'b'")
    assert frame.rdd.getNumPartitions() == 1
    assert "Filter (" not in frame._jdf.queryExecution().executedPlan().toString()
    assert [r.source for r in frame.collect()] == ["b"]
    assert len(tables.cuts("numbers", tables.resolve(uri, None, None), [])) == 3


def test_rev_is_a_number_a_tag_or_a_date(session, uri):
    from govtool.store.tags import create_tag

    store = Store.init(uri)
    for n in (1, 2):
        data = _rows_as_parquet([{"n": n}])
        store.commit(Changes(("s",), (Fragment("s", "numbers", data, 1),)), message="", author="", batch=f"b{n}")
    create_tag(store, "first", store.resolve("1"), author="me")

    def stated(**options):
        return [r.n for r in read(session, uri, "numbers", **options).collect()]

    assert (stated(), stated(rev="1"), stated(rev="first"), stated(rev="HEAD~1"), stated(rev=store.head().id[:8])) == (
        [2],
        [1],
        [1],
        [1],
        [2],
    )
    assert stated(rev="2999-01-01") == [2]
    with pytest.raises(Exception, match="there is no commit 'nothing'"):
        read(session, uri, "numbers", rev="nothing")


def test_what_cannot_be_read_is_said(session, store, uri):
    for options, words in (
        ({"table": "nothing"}, "there is no table 'nothing'"),
        ({"table": "egdes"}, "did you mean edges"),
        ({"table": "record"}, "did you mean versions"),
        ({"table": "edges", "verison": "1"}, "no option verison"),
        ({}, "no table is named"),
    ):
        with pytest.raises(Exception, match=words):
            session.read.format("govtool").options(**options).load(uri)
    with pytest.raises(Exception, match="there is no store at"):
        read(session, uri + "-not", "edges")


def test_an_empty_store_has_no_rows(session, uri):
    Store.init(uri)
    assert read(session, uri, "edges").count() == 0
    assert read(session, uri, "facts").count() == 0


def save(frame, uri, table, mode="append", **options):
    frame.write.format("govtool").mode(mode).options(table=table, **options).save(uri)


def test_a_job_is_one_commit(session, store, uri):
    before = store.head().seq
    frame = session.range(0, 100, 1, numPartitions=4).selectExpr("id", "'x' AS word")
    save(frame, uri, "numbers", source="job", message="nightly")
    head = store.head()
    assert (head.seq, head.message, head.sources) == (before + 1, "nightly", ("job",))
    assert sum(ref.table == "numbers" for ref in store.fragments(head)) == 4
    assert read(session, uri, "numbers").agg({"id": "sum"}).collect()[0][0] == 4950


def test_appending_adds_and_overwriting_replaces_what_the_source_said(session, store, uri):
    frame = session.range(0, 4, 1, numPartitions=2)
    save(frame, uri, "numbers", source="job")
    save(frame, uri, "numbers", source="job")
    save(frame, uri, "numbers", source="other")
    assert read(session, uri, "numbers").count() == 12
    save(session.range(1), uri, "numbers", mode="overwrite", source="job")
    assert read(session, uri, "numbers").count() == 5
    head = store.head()
    save(session.range(1), uri, "numbers", mode="overwrite", source="job")
    assert store.head() == head


def test_equal_rows_of_two_partitions_are_both_there(session, store, uri):
    save(session.range(0, 4, 1, numPartitions=4).selectExpr("1 AS one"), uri, "ones")
    assert read(session, uri, "ones").count() == 4


def test_a_failed_job_leaves_nothing_visible(session, store, uri):
    head, fragments = store.head(), store.fragments(store.head())
    frame = session.range(0, 8, 1, numPartitions=4).selectExpr("assert_true(id < 7) AS fine", "id")
    with pytest.raises(Exception, match="is not true"):
        save(frame, uri, "numbers")
    assert (store.head(), store.fragments(store.head())) == (head, fragments)


def test_a_retried_task_writes_once(session, store, uri, tmp_path):
    """A task that fails after it has uploaded, as when its executor is lost: the second attempt writes the same."""
    import pyarrow as pa

    from govtool.app.spark_source import write

    batch = pa.record_batch({"n": [1, 2, 3]})
    first, second = (list(write.fragments("numbers", "job", "j", "0", [batch])) for _ in range(2))
    assert first == second
    refs = [store.upload(f) for f in (*first, *second)]
    store.commit(Changes(uploaded=tuple(refs)), message="", author="", batch="b")
    assert read(session, uri, "numbers").count() == 3


def test_written_edges_are_lineage(session, store, uri):
    rows = [("mart.audience", "email", "ml.features", "mail_hash", "transformation", ["sha2"], True)]
    columns = "source_dataset string, source_column string, target_dataset string, target_column string, kind string, functions array<string>, masking boolean"
    save(session.createDataFrame(rows, columns), uri, "edges", source="ml")
    head = store.head()
    result = impact(open_index(store, head), "crm.users.email")
    assert "ml.features.mail_hash" in {entry.column for entry in result.columns}
    found = read(session, uri, "edges").where("target_dataset = 'ml.features' AND kind <> 'read'").collect()
    assert [(r.source_dataset, r.functions, r.masking) for r in found] == [("mart.audience", ["sha2"], True)]
    assert [r.how for r in read(session, uri, "evidence").where("source = 'ml'").collect()] == ["declared"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("derivations", "written by commands of govtool only"),
        ("edges", "missing: source_column"),
        ("facts", "unknown: id"),
    ],
)
def test_what_cannot_be_written_is_said(session, store, uri, table, words):
    head = store.head()
    with pytest.raises(Exception, match=words):
        save(session.range(1), uri, table)
    assert store.head() == head


@pytest.mark.long
def test_on_s3(session, monkeypatch, tmp_path):
    """Workers find the credentials of the session's environment; no jar is involved."""
    from bench import servers

    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    with servers.moto() as server:
        environment = dict(session.sparkContext.environment)
        for name, value in servers.environment(server.url).items():
            monkeypatch.setenv(name, value)
        try:
            govtool.spark.register(session)
            uri = f"s3://{servers.BUCKET}/lineage"
            store = Store.init(uri)
            save(session.range(0, 10, 1, numPartitions=2), uri, "numbers", source="job")
            rows = [("a.b", "c", "d.e", "f", "identity")]
            columns = ["source_dataset", "source_column", "target_dataset", "target_column", "kind"]
            save(session.createDataFrame(rows, columns), uri, "edges")
            assert store.head().seq == 2
            assert read(session, uri, "numbers").where("id >= 8").count() == 2
            edges = read(session, uri, "edges").where("source_dataset = 'a.b' AND kind = 'identity'").collect()
            assert [tuple(r[:4]) for r in edges] == [("a.b", "c", "d.e", "f")]
        finally:
            session.sparkContext.environment.clear()
            session.sparkContext.environment.update(environment)
