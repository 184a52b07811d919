"""``govtool check --measure``: k of an aggregate, measured behind the rows that a recorded run left."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lineage_of import commit_lineage, derivation
from measured import run as checked_against_traces
from recorded import Warehouse

import govtool
from govtool.cli.main import main
from govtool.store import Store

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "check-1.json").read_text(encoding="utf-8"))
STAFF = [(n, f"p{n}", land, 10 * n) for n, land in enumerate(["de"] * 5 + ["fr"] * 3 + ["uk"] * 2)]
VISITS = [(n, n % 4) for n in range(20)]
POLICY = """version: 1
name: k
classes: {personal: {}}
classify: [{class: personal, columns: ["*/staff.pay"]}]
declassify:
  - {name: large, kind: aggregate, functions: [avg, sum], from: [personal], to: none, min_group_size: %d,
     evidence: [%s]%s}
rules:
  - {id: F, title: No single pay, deny: {flow: {class: personal, to: {datasets: ["/pays/"]}}},
     unless: [{declassified: [large]}]}
%s
"""


@pytest.fixture
def house(tmp_path, monkeypatch):
    """staff → pays, the average pay of each country: groups of 5, 3 and 2."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    made = Warehouse(tmp_path, Store.init(str(tmp_path / ".govtool")))
    kinds = {"id": pa.int64(), "name": pa.string(), "land": pa.string(), "pay": pa.int64()}
    made.table("staff", kinds, STAFF[:4], STAFF[4:])
    made.table("visits", {"day": pa.int64(), "who": pa.int64()}, VISITS)
    return made


@pytest.fixture
def check(house, capsys):
    """Record the query of an output, write a policy, and check."""

    def command(
        sql, k=3, *words, inputs=("staff",), evidence="measured", more="", waivers="", function="avg", record=True
    ):
        if sql is not None:
            write = house.run(sql, "pays", *inputs, run="app-1/0")
            if record:
                house.commit(write)
            commit_lineage(
                house.store,
                derivation(house.folder, "staff", "id name land pay"),
                derivation(house.folder, "visits", "day who"),
                derivation(house.folder, "pays", "land pay", f"staff.pay -> pay aggregation {function}",
                           "staff.land -> land identity", run="app-1/0"),
            )  # fmt: skip
        (house.folder / "policies").mkdir(exist_ok=True)
        (house.folder / "policies" / "p.yml").write_text(POLICY % (k, evidence, more, waivers), encoding="utf-8")
        capsys.readouterr()
        code = main(["check", "--measure", "--format", "json", "--today", "2026-11-23", *words])
        out, err = capsys.readouterr()
        assert code in (0, 1), err
        answer = json.loads(out)
        jsonschema.validate(answer, SCHEMA)
        return code, answer

    return command


PAYS = "SELECT land, avg(pay) AS pay FROM staff GROUP BY land"


def test_groups_that_are_large_enough_hold_with_run_and_size_as_evidence(check):
    code, answer = check(PAYS, 2)
    assert (code, answer["findings"]) == (0, [])
    (found,) = answer["measured"]
    assert (found["verdict"], found["at_least"], found["at_most"], found["run"]) == ("shown", 2, 2, "app-1/0")
    assert found["counted"].endswith("/staff")


def test_a_group_below_k_is_a_finding_with_its_size(check):
    code, answer = check(PAYS, 3)
    assert code == 1
    (finding,) = answer["findings"]
    assert (finding["verdict"], finding["measured"]) == ("violated", 2)
    assert "smallest measured group: 2 rows of" in finding["why"]
    assert "k = 3 (run app-1/0)" in finding["why"]


def test_nothing_is_measured_unless_it_is_requested(check, capsys):
    check(PAYS, 2)
    assert main(["check", "--format", "json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert "measured" not in answer
    assert not govtool.open().check(measure=True, today=date(2026, 11, 23)).findings


def test_a_measured_group_below_k_outweighs_a_declaration(check):
    signed = ', declared: [{columns: ["/pay/"], by: someone, expires: 2027-01-01}]'
    assert check(PAYS, 2, evidence="measured, declared", more=signed)[0] == 0
    code, answer = check(None, 3, evidence="measured, declared", more=signed)
    assert (code, answer["findings"][0]["verdict"]) == (1, "violated")


def test_members_are_the_values_of_the_entity(check):
    """Each person of staff visits five times, or never: rows of the join are many, people few."""
    sql = "SELECT land, sum(pay) AS pay FROM staff JOIN visits ON id = who GROUP BY land"
    entity = ', entity: ["*/staff.id"]'
    code, answer = check(sql, 4, more=entity, inputs=("staff", "visits"), function="sum")
    assert (code, answer["measured"][0]["at_most"]) == (0, 4)
    assert answer["measured"][0]["counted"].endswith("staff.id")
    code, answer = check(None, 5, more=entity)
    assert (code, answer["findings"][0]["measured"]) == (1, 4)


def test_the_rows_that_are_counted_are_the_inputs_not_those_of_a_join(check):
    sql = "SELECT land, sum(pay) AS pay FROM staff JOIN visits ON id = who GROUP BY land"
    _, answer = check(sql, 4, inputs=("staff", "visits"), function="sum")
    assert answer["measured"][0]["at_most"] == 4


def test_one_member_beside_all_others_of_a_crossing_is_one(check):
    sql = "SELECT a.id AS land, avg(a.pay) AS pay FROM staff a CROSS JOIN staff b GROUP BY a.id"
    code, answer = check(sql, 2)
    (finding,) = answer["findings"]
    assert finding["verdict"] == "unknown"
    assert (answer["measured"][0]["at_least"], answer["measured"][0]["at_most"]) == (1, 10)
    assert code == 0


def test_rows_without_a_value_of_the_aggregated_column_are_no_members(check, house):
    """An average over four people of whom one has a pay is the pay of one."""
    kinds = {"id": pa.int64(), "name": pa.string(), "land": pa.string(), "pay": pa.int64()}
    house.table("staff", kinds, [(n, "x", "de", 50 if n == 2 else None) for n in range(4)], [(9, "x", "fr", None)])
    code, answer = check(PAYS, 2)
    assert (code, answer["findings"][0]["measured"]) == (1, 1)
    code, answer = check(None, 2, more=', entity: ["*/staff.id"]')
    assert (code, answer["findings"][0]["measured"]) == (1, 1)


def test_an_aggregate_that_takes_in_less_than_its_group_is_not_shown(check, house):
    check("SELECT land, avg(CASE WHEN id = 9 THEN pay END) AS pay FROM staff GROUP BY land", 2)
    commit_lineage(
        house.store,
        derivation(house.folder, "pays", "pay", "staff.pay -> pay aggregation avg", "staff.id -> pay conditional case"),
    )
    code, answer = check(None, 2)
    assert (code, answer["findings"][0]["verdict"]) == (1, "violated")
    assert "decides what of a group is taken in" in answer["findings"][0]["why"]


# ---- not measurable ------------------------------------------------------------------------------------


def unknown(check, *args, **more):
    code, answer = check(*args, **more)
    (finding,) = answer["findings"]
    assert (code, finding["verdict"]) == (0, "unknown")
    return finding["why"]


def test_an_output_that_nobody_recorded(check):
    assert "no recorded run wrote" in unknown(check, PAYS, 2, record=False)


def test_an_output_that_was_written_again(check, house):
    check(PAYS, 2)
    pq.write_table(pa.table({"land": ["de"], "pay": [1.0]}), house.folder / "pays" / "out.parquet")
    assert "were written again" in unknown(check, None, 2)


def test_an_output_to_which_somebody_added(check, house):
    check(PAYS, 2)
    pq.write_table(pa.table({"land": ["de"], "pay": [1.0]}), house.folder / "pays" / "more.parquet")
    assert "1 files of" in unknown(check, None, 2)


def test_an_input_that_is_gone(check, house):
    check(PAYS, 2)
    (house.folder / "staff" / "part-1.parquet").unlink()
    assert "is gone since app-1/0 read it" in unknown(check, None, 2)


def test_an_output_without_rows(check):
    assert "left no row" in unknown(check, f"{PAYS} HAVING count(*) > 50", 2)


def test_an_entity_that_the_run_did_not_read(check):
    assert "did not read" in unknown(check, PAYS, 2, more=', entity: ["*/visits.who"]')


# ---- what is accepted ----------------------------------------------------------------------------------


def test_a_baseline_accepts_no_smaller_group(check, house):
    file = house.folder / "accepted.json"
    check(PAYS, 5, "--update-baseline", str(file))
    assert json.loads(file.read_text())["findings"][0]["measured"] == 2
    code, answer = check(None, 5, "--baseline", str(file))
    assert (code, answer["findings"][0]["accepted"]) == (0, True)
    (house.folder / "pays" / "out.parquet").unlink()
    single = "SELECT land, avg(pay) AS pay FROM staff WHERE id <> 9 GROUP BY land"
    house.commit(house.run(single, "pays", "staff", run="app-2/0"))
    code, answer = check(None, 5, "--baseline", str(file))
    assert (code, answer["findings"][0]["worse_than"]) == (1, "groups of 2")


@pytest.mark.parametrize(("least", "verdict"), [(2, "waived"), (3, "violated")])
def test_a_waiver_may_say_how_small_a_group_it_accepts(check, least, verdict):
    waiver = "{rule: F, columns: ['/pay/'], reason: r, approved_by: a, expires: 2027-01-01, min_group: "
    waiver = f"waivers: [{waiver}{least}}}]"
    _, answer = check(PAYS, 5, waivers=waiver)
    assert answer["findings"][0]["verdict"] == verdict
    assert answer["findings"][0]["worse_than"] == (None if verdict == "waived" else "groups of 3")


def test_a_baseline_with_a_size_that_is_none(check, house):
    file = house.folder / "accepted.json"
    check(PAYS, 5, "--update-baseline", str(file))
    file.write_text(file.read_text().replace('"measured": 2', '"measured": "two"'))
    assert main(["check", "--measure", "--baseline", str(file)]) == 2


def test_smallest_groups_are_those_of_traces_of_every_row(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    outcome = checked_against_traces(range(12))
    assert outcome.wrong == []
    assert outcome.same > 6
