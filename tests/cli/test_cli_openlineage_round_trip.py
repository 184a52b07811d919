"""Export, ingest into a new store, export: the same events, whatever the first store was made of."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(
    0, str(Path(__file__).parents[1] / "capture" / "openlineage")
)  # the checks against the published schemas
from openlineage_spec import problems

FIXTURES = Path(__file__).parents[2] / "fixtures"
LOGS = sorted(p for p in (FIXTURES / "logs").iterdir() if p.suffix != ".expected")
SPARK = sorted((FIXTURES / "spark" / "logs").glob("*.gz"))

GIVEN = {
    "sql": [
        ("sql", FIXTURES / "shop" / "postgres", "--dialect", "postgres"),
        ("sql", FIXTURES / "shop" / "snowflake", "--dialect", "snowflake", "--source", "snow"),
    ],
    "dbt": [("dbt", FIXTURES / "dbt" / "shop" / "target")],
    "logs": [
        ("log", path, "--source", f"log:{path.name}", *(("--from", "sql") if path.suffix == ".sql" else ()))
        for path in LOGS
    ],
    "spark": [("spark", path, "--source", f"spark:{path.name}") for path in SPARK],
    "openlineage": [("openlineage", FIXTURES / "openlineage")],
    "prov": [("prov", path) for path in sorted((FIXTURES / "prov").glob("*.json"))],
}


def trip(cli, project, name: str) -> str:
    """Ingest an export into a store of its own, and export that."""
    assert cli("init", "--store", name).code == 0
    assert cli("ingest", "openlineage", f"{name}.jsonl", "--store", name).code == 0
    done = cli("export", "openlineage", "--queries", "--store", name)
    assert done.code == 0
    return done.out


@pytest.mark.parametrize("kinds", [*([kind] for kind in GIVEN), list(GIVEN)], ids=[*GIVEN, "all"])
def test_an_export_that_is_ingested_is_exported_again(store, project, kinds):
    codes = [store("ingest", *arguments).code for kind in kinds for arguments in GIVEN[kind]]
    assert codes.count(0) >= len(codes) - 1, "one log is none that is understood"
    first = store("export", "openlineage", "--queries").out
    assert first.count("\n") > 5
    (project / "first.jsonl").write_text(first)
    # The one field that differs is the time of what has none: that of its commit.
    assert strip_times(trip(store, project, "first")) == strip_times(first)


def strip_times(text: str) -> list[str]:
    """Events in one order, those of runs with their times."""
    events = [json.loads(line) for line in text.splitlines()]
    return sorted(json.dumps({**e, "eventTime": e["eventTime"] if "run" in e else ""}, sort_keys=True) for e in events)


def test_a_table_and_its_path_stay_one_dataset(store, project):
    """That Spark's logs have two names of a dataset is a symlink, and so is that PROV has an alternate."""
    (project / "doc.provn").write_text(
        "document\n  prefix ex <https://ex.org/d#>\n  entity(ex:a)\n  entity(ex:c)\n  alternateOf(ex:c, ex:a)\nendDocument\n"
    )
    assert store("ingest", "prov", "doc.provn").code == 0
    assert store("ingest", "spark", FIXTURES / "spark" / "logs" / "spark-4.3.0.gz").code == 0
    first = store("export", "openlineage").out
    events = [json.loads(line) for line in first.splitlines()]
    assert [problem for event in events for problem in problems(event)] == []
    linked = {
        (event["dataset"]["name"], link["name"], link["type"])
        for event in events
        for link in event.get("dataset", {}).get("facets", {}).get("symlinks", {}).get("identifiers", ())
    }
    assert ("default.sales", "/tmp/shop/warehouse/sales", "LOCATION") in linked
    assert {relation for *_, relation in linked} == {"LOCATION", "TABLE"}
    (project / "first.jsonl").write_text(first)
    assert strip_times(trip(store, project, "first")) == strip_times(first)
    reached = json.loads(store("impact", "/tmp/shop/warehouse/sales", "--store", "first", "-f", "json").out)
    assert "default.sales." in json.dumps(reached)
