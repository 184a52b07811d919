"""The commands and calls of docs/both-levels.md, over jobs that are recorded by hand: commands print what stands below them."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from records.lineage_of import commit_lineage, derivation
from records.recorded import Warehouse
from test_tutorials import Reader, steps

import govtool
from govtool.store import Store

PAGE = Path(__file__).parents[2] / "docs" / "both-levels.md"
USERS = [(1, "Ann@x", "de"), (2, "Bob@x", "fr"), (3, "Eve@y", "de"), (4, "zoe@z", "uk"), (5, "kim@x", "de")]
STAFF = [(n, "de" if n < 11 else "fr", 10 * n) for n in range(15)]
ORDERS = {"monday": [(1, "ann", 10), (2, "ann", 20), (3, "bob", 30)], "tuesday": [(1, "ann", 10), (2, "ann", 25)]}
POLICY = """\
version: 1
name: k
classes: {personal: {}}
classify: [{class: personal, columns: ["*/staff.pay"]}]
declassify:
%s
rules:
  - {id: F, title: No single pay, deny: {flow: {class: personal, to: {datasets: ["/pay/"]}}},
     unless: [{declassified: [large-groups]}]}
"""


@pytest.fixture
def house(tmp_path, monkeypatch):
    """users → stg_users → by_country, mail → sheet, which no run made; staff → pay; a report of each day's orders."""
    pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
    home = tmp_path / "data"
    for folder in ("raw", "out", "monday", "tuesday"):
        (home / folder).mkdir(parents=True)
    monkeypatch.chdir(home)
    made = Warehouse(home, Store.init(str(home / ".govtool")))
    made.table("raw/users", {"id": pa.int64(), "email": pa.string(), "country": pa.string()}, USERS)
    made.table("raw/staff", {"id": pa.int64(), "country": pa.string(), "pay": pa.int64()}, STAFF)
    record(made, "a/0", "out/stg_users", "raw/users", "SELECT id, lower(email) AS email, country FROM {}")
    record(
        made,
        "b/0",
        "out/by_country",
        "out/stg_users",
        "SELECT country, count(email) AS people FROM {} GROUP BY country",
    )
    record(made, "c/0", "out/mail", "out/stg_users", "SELECT email FROM {} WHERE country <> 'uk'")
    record(made, "pay-7/0", "out/pay", "raw/staff", "SELECT country, avg(pay) AS pay FROM {} GROUP BY country")
    for number, (day, rows) in enumerate(ORDERS.items()):
        made.table(f"{day}/orders", {"id": pa.int64(), "user": pa.string(), "spent": pa.int64()}, rows)
        sql = "SELECT user, sum(spent) AS total, count(*) AS n FROM {} GROUP BY user"
        record(made, f"n-{number}/0", f"{day}/report", f"{day}/orders", sql, job="nightly")
    commit_lineage(
        made.store,
        derivation(home, "raw/users", "id email country"),
        derivation(home, "out/stg_users", "id email country", "raw/users.email -> email transformation lower"),
        derivation(home, "out/by_country", "country people", "out/stg_users.email -> people aggregation count"),
        derivation(home, "out/mail", "email", "out/stg_users.email -> email identity"),
        derivation(home, "out/sheet", "email", "out/mail.email -> email identity"),
        derivation(home, "raw/staff", "id country pay"),
        derivation(home, "out/pay", "country pay", "raw/staff.pay -> pay aggregation avg", run="pay-7/0"),
    )
    return home


def record(made, run, output, place, sql, job=None):
    """Run a query over a folder, as a recorded job."""
    write = made.run(sql.format(f'"{place}"'), output, place, run=run)
    if job:
        made.runs[-1] = replace(made.runs[-1], job=job)
    made.commit(write)


def test_the_page(house, capsys):
    page = PAGE.read_text(encoding="utf-8").replace("file:///data", house.as_uri())
    (declassifier,) = re.findall(r"^    declassify:\n((?:     .*\n)+)", page, re.MULTILINE)
    (house / "policies").mkdir()
    (house / "policies" / "k.yml").write_text(POLICY % textwrap.dedent(declassifier).rstrip(), encoding="utf-8")
    commands = [
        step
        for block in re.findall(r"(?:^    .*\n|^\n)+", page, re.MULTILINE)
        for step in steps(textwrap.dedent(block))
    ]
    assert len(commands) == 3
    for command in commands:
        Reader(capsys).run(command)
    lines = re.findall(r"^    (graph\..*)$", page, re.MULTILINE)
    values = [eval(line, {"graph": govtool.open()}) for line in lines]
    assert (values[0], len(values[1]), len(values[2])) == (3, 1, 1)
