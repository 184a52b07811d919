"""``govtool compare oracle``: exports of Snowflake and Databricks beside the graph."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest
from answers import check

ROOT = Path(__file__).parents[2]
EXPORTS = ROOT / "fixtures" / "oracles" / "exports"
SNOWFLAKE, DATABRICKS = EXPORTS / "access_history.json", EXPORTS / "column_lineage.csv"

WAREHOUSE = """\
CREATE VIEW stg.users AS SELECT id, lower(email) AS email, segment FROM crm.users;
CREATE TABLE mart.audience AS
SELECT u.email, count(o.id) AS orders, u.segment, max(o.paid) AS paid
FROM stg.users u JOIN shop.orders o ON o.user_id = u.id GROUP BY 1, 3;
CREATE TABLE mart."Odd Name" AS
SELECT CASE WHEN active THEN email END AS "Who", id FROM crm.users;
"""

LAKE = """\
CREATE TABLE mart.audience AS
SELECT CASE WHEN u.vip THEN u.email END AS email, count(o.id) AS orders, u.`Odd-Col` AS odd, o.gone
FROM crm.users u JOIN shop.orders o ON o.user_id = u.id GROUP BY ALL;
"""


@pytest.fixture
def warehouse(govtool, project):
    (project / "etl.sql").write_text(WAREHOUSE)
    govtool("init")
    govtool("ingest", "sql", "etl.sql", "-d", "snowflake", "--default-catalog", "dw", "--namespace", "snowflake://acme")
    return project


@pytest.fixture
def lake(govtool, project):
    (project / "lake.sql").write_text(LAKE)
    govtool("init")
    govtool("ingest", "sql", "lake.sql", "-d", "databricks")  # names of two parts; the export has three
    return project


def edges(answer):
    """Edges by outcome: the ends of source and target, and the reason."""
    found = {}
    for edge in answer["edges"]:
        pair = edge["source"].rpartition("/")[2], edge["target"].rpartition("/")[2], edge["reason"]
        found.setdefault(edge["outcome"], set()).add(pair)
    return found


def test_snowflake(govtool, warehouse):
    done = govtool("compare", "oracle", SNOWFLAKE, "-f", "json")
    assert done.code == 0
    answer = check(done.out, "compare-oracle-1")
    assert edges(answer) == {
        "agree": {
            ("dw.stg.users.email", "dw.mart.audience.email", None),
            ("dw.shop.orders.id", "dw.mart.audience.orders", None),
            ("dw.crm.users.email", 'dw.mart."Odd Name"."Who"', None),
        },
        "only_oracle": {
            ("dw.crm.users.segment", "dw.mart.audience.segment", "the graph has it over 2 hops"),
        },
        "only_graph": {
            ("dw.stg.users.segment", "dw.mart.audience.segment", "the export has other sources of the column"),
            ("dw.shop.orders.paid", "dw.mart.audience.paid", "the export does not mention the column"),
            ("dw.crm.users.id", 'dw.mart."Odd Name".id', "the export does not mention the column"),
        },
    }
    assert answer["oracle"] == "snowflake"
    assert answer["summary"] == {"agree": 3, "only_graph": 3, "only_oracle": 1, "rate": 0.428571}
    assert answer["unknown_datasets"] == ["dw.elsewhere.t"]
    assert answer["left_out"] == {"nothing was written": 1, "read: Stage": 1, "written: Stage": 1}
    agreed = next(e for e in answer["edges"] if e["outcome"] == "agree")
    assert agreed["evidence"].startswith("etl.sql:")


def test_databricks(govtool, lake):
    answer = check(govtool("compare", "oracle", DATABRICKS, "-f", "json").out, "compare-oracle-1")
    assert edges(answer) == {
        "agree": {
            ("crm.users.email", "mart.audience.email", None),
            ("crm.users.vip", "mart.audience.email", None),  # it steers: right, where the oracle has it
            ("shop.orders.id", "mart.audience.orders", None),
            ('crm.users."odd-col"', "mart.audience.odd", None),
        },
        "only_graph": {("shop.orders.gone", "mart.audience.gone", "the export does not mention the column")},
    }
    assert answer["left_out"] == {"nothing was written": 1, "read: a path": 1, "written: a path": 1}


def test_every_form_of_an_export_says_the_same(govtool, lake):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    with DATABRICKS.open() as stream:
        rows = list(csv.DictReader(stream))
    Path("a.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    Path("a.json").write_text(json.dumps([{k.upper(): v for k, v in row.items()} for row in rows], indent=2))
    Path("a.csv.gz").write_bytes(gzip.compress(DATABRICKS.read_bytes()))
    pq.write_table(pa.Table.from_pylist(rows), "a.parquet")
    expected = json.loads(govtool("compare", "oracle", DATABRICKS, "-f", "json").out)["edges"]
    for name in ("a.jsonl", "a.json", "a.csv.gz", "a.parquet"):
        assert json.loads(govtool("compare", "oracle", name, "-f", "json").out)["edges"] == expected


def test_json_inside_csv(govtool, warehouse):
    rows = json.loads(SNOWFLAKE.read_text())
    with Path("history.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["QUERY_ID", "OBJECTS_MODIFIED"])
        writer.writerows([row["QUERY_ID"], json.dumps(row["OBJECTS_MODIFIED"])] for row in rows)
    expected = json.loads(govtool("compare", "oracle", SNOWFLAKE, "-f", "json").out)
    assert json.loads(govtool("compare", "oracle", "history.csv", "-f", "json").out)["edges"] == expected["edges"]


def test_both_at_once_and_only_differences(govtool, warehouse):
    done = govtool("compare", "oracle", SNOWFLAKE, DATABRICKS, "--differences")
    assert done.code == 0
    assert "snowflake+databricks" in done.out
    assert "agree  " not in done.out
    assert "the graph has it over 2 hops" in done.out


@pytest.mark.parametrize(("percent", "code"), [("40", 0), ("43", 1)])
def test_failing(govtool, warehouse, percent, code):
    assert govtool("compare", "oracle", SNOWFLAKE, "--fail-under", percent).code == code


def test_nothing_in_common_is_not_agreement(govtool, lake):
    Path("other.json").write_text('[{"objects_modified": [{"objectDomain": "Table", "objectName": "X.Y.Z"}]}]')
    done = govtool("compare", "oracle", "other.json")
    assert done.code == 3
    assert "x.y.z" in done.err


def test_an_opaque_column_is_the_reason(govtool, project):
    Path("a.sql").write_text("CREATE TABLE mart.audience AS SELECT * FROM crm.users")
    govtool("init")
    govtool("ingest", "sql", "a.sql", "-d", "databricks")
    answer = json.loads(govtool("compare", "oracle", DATABRICKS, "-f", "json").out)
    assert "the graph does not know the column that is written" in {edge["reason"] for edge in answer["edges"]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", "[{}]"),
        ("b.csv", "a,b\n1,2\n"),
        ("c.json", "[{"),
        ("d.parquet", "PAR1 and nothing more"),
        ("e", None),
    ],
)
def test_what_is_no_export(govtool, lake, name, content):
    if content is not None:
        Path(name).write_text(content)
    done = govtool("compare", "oracle", name)
    assert done.code == 2
    assert name in done.err


def test_unknown_oracle(govtool, lake):
    assert govtool("compare", "oracle", DATABRICKS, "--oracle", "oracle").code == 2
