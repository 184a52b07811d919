"""Partitions that an erasure empties: neither the copy nor the certificate has their names, which are values."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded import SESSION, Warehouse, listing

import govtool
from govtool.app.datasets.places import path_id
from govtool.app.erasure.keys import Wanted
from govtool.app.erasure.partitions import without_values
from govtool.model.run import Run, RunInput, RunOutput
from govtool.records.capture import RecordedWrite
from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.from_sql import from_sql
from govtool.records.plan.nodes import Plan, Relation, Write
from govtool.store import Store

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "erasure-certificate-1.json"
ROWS = [("ann", 1), ("ann", 2), ("bob b", 3), ("bob b", 4), ("kim", 5)]


class Parted:
    """Payments in a folder a customer → sums in a folder a customer, and their total."""

    def __init__(self, folder: Path, rows=ROWS, form="parquet"):
        self.folder, self.form = folder, form
        folder.mkdir()
        self.warehouse = Warehouse(folder, Store.init(str(folder / ".govtool")))
        self.write("payments", "customer", rows, form)
        sums = "SELECT sum(amount) AS amount, customer FROM payments GROUP BY customer"
        self.run("a/0", sums, "sums", "payments", "customer", form)
        self.run("b/0", "SELECT sum(amount) AS amount, 'all' AS whose FROM sums", "total", "sums", "who", "parquet")

    def write(self, name, column, rows, form):
        for number, (value, amount) in enumerate(rows):
            place = self.folder / name / f"{column}={value.replace(' ', '%20')}" / f"part-{number}.{form}"
            place.parent.mkdir(parents=True, exist_ok=True)
            if form == "csv":
                place.write_text(f"amount\n{amount}\n", encoding="utf-8")
            else:
                pq.write_table(pa.table({"amount": pa.array([amount], pa.int64())}), place)

    def relation(self, name, column, form):
        files = sorted((self.folder / name).rglob(f"*.{form}"))
        values = [(path.parent.name.partition("=")[2].replace("%20", " "),) for path in files]
        listed = tuple(replace(file, partition=value) for file, value in zip(listing(files), values, strict=True))
        columns = Attribute(0, "amount", t.LONG), Attribute(1, column, t.STRING)
        schema = t.Struct((t.Field("amount", t.LONG),))
        options = (("header", "true"),) if form == "csv" else ()
        return Relation(0, (self.folder / name).as_uri(), form, listed, columns, schema, (column,), options)

    def run(self, run, sql, output, source, column, form):
        plan = Plan(from_sql(sql, {source: self.relation(source, column, form)}), SESSION)
        made = DuckExecutor(SESSION).arrow(plan.root).to_pylist()
        self.write(output, "who", [tuple(row.values())[::-1] for row in made], "parquet")
        place = (self.folder / output).as_uri()
        written = Write(plan.root, place, "parquet", "append", ("amount", "who"), ("who",))
        ids = path_id(str(self.folder / source)), path_id(str(self.folder / output))
        self.warehouse.runs.append(
            Run(
                id=run, job=f"{run} → out", status="complete", how="plan", application=run[0],
                inputs=(RunInput(ids[0]),), outputs=(RunOutput(ids[1]),),
            )
        )  # fmt: skip
        files = self.relation(output, "who", "parquet")
        self.warehouse.commit(RecordedWrite(run, Plan(written, SESSION), ids[1], files))

    def erased(self, *values):
        subjects = [f"payments.customer={value}" for value in values]
        plan = govtool.open().erase_plan(subjects, all_runs=True)
        assert plan.is_certain
        place = self.folder / "plan.json"
        place.write_text(json.dumps(plan.to_dict()), encoding="utf-8")
        text = govtool.apply_erasure(place, to=self.folder.parent / "copies")
        assert govtool.verify_erasure(self.folder.parent / "copies").problems == ()
        jsonschema.validate(text.to_dict(), json.loads(SCHEMA.read_text(encoding="utf-8")))
        return {each["folder"]: each for each in text.document["datasets"]}, json.dumps(text.document)


@pytest.fixture
def parted(tmp_path, monkeypatch):
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))

    def made(**more):
        found = Parted(tmp_path / "house", **more)
        monkeypatch.chdir(tmp_path / "house")
        return found

    return made


def folders(place):
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_dir())


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_partition_without_rows_is_neither_in_the_copy_nor_in_the_certificate(parted, tmp_path, form):
    datasets, text = parted(form=form).erased("bob b")
    assert folders(tmp_path / "copies") == [
        *("payments", "payments/customer=ann", "payments/customer=kim"),
        *("sums", "sums/who=ann", "sums/who=kim"),
        *("total", "total/who=all"),
    ]
    assert datasets["payments"]["erased"] == {"partitions": 1, "files": 2}
    assert datasets["sums"]["erased"] == {"partitions": 1, "files": 1}
    assert "erased" not in datasets["total"]
    assert (datasets["payments"]["deleted"], datasets["payments"]["rows_after"]) == (2, 3)
    assert "bob" not in text


def test_a_partition_with_rows_of_others_stays(parted, tmp_path):
    house = parted(rows=[*ROWS, ("kim", 5)])
    house.write("payments", "customer", [("none", 0)], "parquet")
    datasets, _ = house.erased("kim")
    assert folders(tmp_path / "copies/sums") == ["who=ann", "who=bob%20b"]
    assert datasets["payments"]["erased"] == {"partitions": 1, "files": 2}


def test_of_a_dataset_without_partitions_left_the_columns_are(parted, tmp_path):
    datasets, text = parted(rows=ROWS[:2]).erased("ann")
    (file,) = datasets["payments"]["files"]
    table = pq.ParquetFile(tmp_path / "copies" / file["path"]).read()
    assert (table.num_rows, table.column_names) == (0, ["amount", "customer"])
    assert folders(tmp_path / "copies/payments") == []
    assert "ann" not in text


def test_a_folder_that_is_named_after_the_subject_later_is_a_difference(parted, tmp_path):
    parted().erased("kim")
    place = tmp_path / "copies/certificate.json"
    document = json.loads(place.read_text(encoding="utf-8"))
    own = next(each for each in document["datasets"] if each["folder"] == "payments")
    old = tmp_path / "copies" / own["files"][0]["path"]
    new = old.parent.with_name("customer=kim") / old.name
    new.parent.mkdir()
    old.rename(new)
    own["files"][0]["path"] = new.relative_to(tmp_path / "copies").as_posix()
    place.write_text(json.dumps(document), encoding="utf-8")
    problems = govtool.verify_erasure(place).problems
    assert "payments holds the subject's value in column customer" in problems


def test_names_of_folders_are_hidden_where_they_are_the_subjects_value():
    hidden = without_values({"d": [Wanted("name", "bob b"), Wanted("id", "4")]})
    assert hidden("file:///d/name=bob%20b/id=4/x.parquet") == "file:///d/name=…/id=…/x.parquet"
    assert hidden("read file:///d/name=bob b: not written") == "read file:///d/name=…: not written"
    for text in ("file:///d/name=bob%20bc", "file:///d/id=42", "file:///d/surname=bob b", "id=5", "name=bob"):
        assert hidden(text) == text
