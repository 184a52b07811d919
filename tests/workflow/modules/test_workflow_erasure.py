"""Erasure of a subject from the run of a workflow: planned, applied, and equal to a run without its records."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import govtool
from govtool.errors import UnknownNameError, UsageError
from govtool.store import Store

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install govtool[spark]")
pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

BALANCES = "customer string, balance bigint"
PAYMENTS = {
    1: [("ann", 5), ("bob", -7), ("ann", -9), ("kim", 4)],
    2: [("ann", 5), ("bob", 3), ("kim", -9)],
}
SUBJECT = "ann"


def workflow():
    """Balances carried from execution to execution, and who owes more than the average: of a bag, in any order."""

    @govtool.module("Post", {"Payments": "customer string, amount int"}, {"Accounts": BALANCES}, {"Balances": BALANCES})
    def post(payments, accounts):
        moved = payments.selectExpr("customer", "cast(amount as bigint) as balance")
        sums = accounts.unionAll(moved).groupBy("customer").agg({"balance": "sum"})
        balances = sums.withColumnRenamed("sum(balance)", "balance")
        return {"Accounts": balances, "Balances": balances}

    @govtool.module("Alert", {"Balances": BALANCES}, (), {"Below": BALANCES, "Total": "n bigint, balance bigint"})
    def alert(balances):
        bags = govtool.workflow.cogroup(balances, by="customer", names=["rows"])
        balances = govtool.workflow.flatten(bags.where("size(rows) > 0").select("rows"), "rows")
        mean = balances.selectExpr("avg(balance) as mean")
        total = balances.selectExpr("count(*) as n", "sum(balance) as balance")
        return {"Below": balances.crossJoin(mean).where("balance < mean").drop("mean"), "Total": total}

    return govtool.Workflow("accounts", nodes={"post": post, "alert": alert}, edges=[("post", "alert", "Balances")])


def write_payments(folder, gone=()):
    for execution, rows in PAYMENTS.items():
        left = [row for row in rows if row[0] not in gone]
        place = folder / str(execution)
        place.mkdir(parents=True)
        names, amounts = zip(*left, strict=True)
        pq.write_table(
            pa.table({"customer": names, "amount": pa.array(amounts, pa.int32())}), place / "Payments.parquet"
        )


def rows_of(folder):
    tables = [pq.ParquetFile(file).read() for file in sorted(Path(folder).rglob("*.parquet"))]
    return sorted((tuple(row.values()) for table in tables for row in table.to_pylist()), key=repr)


def made(run):
    """What each invocation wrote: the folder, by execution, node and relation."""
    return {
        (each.execution, each.node, name): Path(path)
        for each in run.invocations
        for name, path in (*each.outputs, *((slot, path) for _, slot, path in each.new_state))
    }


@pytest.fixture(scope="module")
def erased(spark, tmp_path_factory):
    """The run, a run without the subject, the plan and the certificate."""
    folder = tmp_path_factory.mktemp("erased")
    write_payments(folder / "in")
    write_payments(folder / "other", [SUBJECT])
    store = Store.init(str(folder / "store")).uri
    flow = workflow()
    run = govtool.run_workflow(flow, folder / "in", state=folder / "state", mode="records", store=store, spark=spark)
    other = govtool.run_workflow(flow, folder / "other", state=folder / "without", spark=spark, mode="untracked")
    plan = govtool.open(store).erase_plan(f"Payments.customer={SUBJECT}", run="accounts")
    text = folder / "plan.json"
    text.write_text(json.dumps(plan.to_dict()), encoding="utf-8")
    govtool.apply_erasure(text, to=folder / "corrected", store=store)
    certificate = json.loads((folder / "corrected" / "certificate.json").read_text(encoding="utf-8"))
    return folder, run.run, other.run, plan, certificate


def test_the_plan_has_every_version_of_the_state(erased):
    _, run, _, plan, _ = erased
    assert plan.is_certain
    assert [len(tokens) for tokens in plan.tokens.values()] == [2, 1]
    datasets = [each.dataset for each in plan.datasets]
    assert all(any(name.endswith(str(path)) for name in datasets) for path in made(run).values())


def test_corrected_copies_are_a_run_without_the_subject(erased):
    folder, run, other, _, certificate = erased
    expected = {key: rows_of(path) for key, path in made(other).items()}
    copies = {each["dataset"]: folder / "corrected" / each["folder"] for each in certificate["datasets"]}
    corrected = 0
    for key, path in made(run).items():
        own = [copy for name, copy in copies.items() if name.endswith(str(path))]
        corrected += len(own)
        assert rows_of(own[0] if own else path) == expected[key], key
    assert corrected > 5  # the rest has the same rows without the subject


def test_copies_are_verified_by_replay_and_the_certificate_does_not_name_the_subject(erased):
    folder, _, _, _, certificate = erased
    ways = {Path(each["dataset"]).name: each["verified"] for each in certificate["datasets"]}
    assert ways.pop("Payments.parquet") == "searched"
    assert set(ways.values()) == {"replayed"}
    assert certificate["unknown"] == certificate["not_written"] == certificate["not_searched"] == []
    assert f'"{SUBJECT}"' not in json.dumps(certificate)
    assert govtool.verify_erasure(folder / "corrected" / "certificate.json").problems == ()


def test_a_relation_is_searched_in_every_execution_that_reads_it(erased):
    folder, _, _, plan, _ = erased
    graph = govtool.open(str(folder / "store"))
    first = graph.erase_plan(f"in/1/Payments.parquet.customer={SUBJECT}", run="accounts")
    assert (first.is_certain, first.tokens, first.not_searched) == (True, plan.tokens, ())
    without = graph.erase_plan(
        f"in/1/Payments.parquet.customer={SUBJECT}", run="accounts", no_subject="2/Payments.parquet"
    )
    assert [name.rpartition("/in/")[2] for name in without.tokens] == ["1/Payments.parquet"]
    with pytest.raises(UsageError, match="its column customer is searched"):
        graph.erase_plan(f"Payments.customer={SUBJECT}", run="accounts", no_subject="2/Payments.parquet")
    with pytest.raises(UnknownNameError) as unknown:
        graph.erase_plan(f"Payment.customer={SUBJECT}", run="accounts")
    assert unknown.value.nearest[0] == "Payments"


def test_what_a_module_decides_by_jobs_is_unknown(spark, tmp_path):
    """The function counts what it receives: the plan of its output does not show that."""

    def chosen(payments, others):
        return {"Out": others.where("amount > 3") if payments.count() > 2 else others, "Copy": payments}

    kinds = "customer string, amount int"
    module = govtool.module("Choose", {"Payments": kinds, "Others": kinds}, (), {"Out": kinds, "Copy": kinds})(chosen)
    write_payments(tmp_path / "in")
    (tmp_path / "in/Others.csv").write_text("customer,amount\nkim,1\nkim,5\n")
    store = Store.init(str(tmp_path / "store")).uri
    govtool.run_workflow(
        govtool.Workflow("w", [module]), tmp_path / "in", state=tmp_path / "s", mode="records", store=store, spark=spark
    )
    plan = govtool.open(store).erase_plan(f"Payments.customer={SUBJECT}", run="w", no_subject="Others")
    outputs = [each for each in plan.datasets if each.dataset.endswith("/Out")]
    assert len(outputs) == 2
    assert all("jobs ran while Choose#" in row.why for each in outputs for row in each.unknown)
    assert all(each.unknown for each in outputs)


PROGRAM = """
import govtool

KINDS = "customer string, amount int"


@govtool.module("Shown", {"Payments": KINDS, "Others": KINDS}, (), {"Out": KINDS, "Paid": KINDS})
def shown(payments, others):
    rates = payments.sparkSession.read.parquet(RATES)
    print(f"{payments.count()} payments, {rates.count()} rates", rates.first())
    return {"Out": others, "Paid": payments}


@govtool.module("Cut", {"Out": KINDS, "Paid": KINDS}, (), {"Left": KINDS})
def cut(out, paid):
    return out.where(f"amount > {paid.count()}")


edges = [("a", "b", "Out"), ("a", "b", "Paid")]
flow = govtool.Workflow("w", nodes={"a": shown, "b": cut}, edges=edges, keep={"a": ["Out"]})
"""


def test_a_module_that_only_prints_what_its_jobs_give_makes_nothing_unknown(spark, tmp_path, monkeypatch):
    """Also of a file that it opens by itself and counts; what is made with a count is unknown."""
    write_payments(tmp_path / "in")
    for name in ("Others", "Rates"):
        table = pa.table({"customer": ["ann", "kim"], "amount": pa.array([1, 5], pa.int32())})
        pq.write_table(table, tmp_path / (f"in/{name}.parquet" if name == "Others" else "rates.parquet"))
    program = tmp_path / "code/accounts.py"
    program.parent.mkdir()
    program.write_text(PROGRAM.replace("RATES", repr(str(tmp_path / "rates.parquet"))))
    store = Store.init(str(tmp_path / "store")).uri
    govtool.run_workflow(str(program), tmp_path / "in", state=tmp_path / "s", mode="records", store=store, spark=spark)

    def unknown(subject, *declared):
        plan = govtool.open(store).erase_plan(f"{subject}.customer={SUBJECT}", run="w", no_subject=declared)
        return sorted({each.dataset.rpartition("/")[2] for each in plan.datasets if each.unknown})

    rates = str(tmp_path / "rates.parquet")
    monkeypatch.chdir(program.parent)
    assert unknown("Payments", "Others", rates) == ["Left"]
    assert unknown(rates, "Others", "Payments") == ["Left"]  # which module ran a job, and on what of it, is not known
    assert unknown("Others", "Payments", rates) == ["Left"]
    program.write_text(program.read_text() + "\n")  # not the code that ran
    assert unknown("Payments", "Others", rates) == ["Left", "Out", "Paid"]
    assert unknown(rates, "Others", "Payments") == ["Left", "Out", "Paid"]


def test_inputs_that_only_jobs_of_a_module_read(spark, tmp_path):
    """No plan of a write reads Payments, and none at all reads Hidden: both may decide what is made."""
    kinds = "customer string, amount int"

    def chosen(payments, hidden, others):
        many = payments.count() > 2 and hidden.rdd.count() > 1
        return {"Out": others.where("amount > 3") if many else others}

    relations = {"Payments": kinds, "Hidden": kinds, "Others": kinds}
    module = govtool.module("Choose", relations, (), {"Out": kinds})(chosen)
    other = govtool.module("Plain", {"Rates": kinds}, (), {"Same": kinds})(lambda rates: {"Same": rates})
    write_payments(tmp_path / "in")
    for name in ("Hidden", "Others", "Rates"):
        (tmp_path / f"in/{name}.csv").write_text("customer,amount\nann,1\nkim,5\n")
    store = Store.init(str(tmp_path / "store")).uri
    for name, each in (("w", module), ("plain", other)):
        flow = govtool.Workflow(name, [each])
        govtool.run_workflow(flow, tmp_path / "in", state=tmp_path / name, mode="records", store=store, spark=spark)
    graph = govtool.open(store)

    def planned(name, run="w", **more):
        plan = graph.erase_plan(f"{name}.customer={SUBJECT}", run=run, **more)
        unknown = [each for each in plan.datasets if each.dataset.endswith("/Out") and each.unknown]
        why = {each.what.rpartition("/in/")[2]: each.why for each in plan.not_searched}
        return {name.rpartition("/in/")[2]: len(rows) for name, rows in plan.tokens.items()}, len(unknown), why

    files = ["1/Payments.parquet", "2/Payments.parquet"]
    tokens, unknown, why = planned("Payments")
    assert (tokens, unknown) == (dict(zip(files, (2, 1), strict=True)), 2)
    assert sorted(why) == ["Hidden.csv", "Others.csv"]
    assert why["Hidden.csv"].endswith("no recorded plan reads it, but jobs of Choose#2 may have")
    _, unknown, why = planned("Others")
    assert (unknown, sorted(why)) == (2, [*files, "Hidden.csv"])
    assert why[files[0]].endswith("no write reads it, but jobs of Choose#1 did")
    assert planned("Others", no_subject=["Payments", "Hidden"])[2] == {}
    tokens, unknown, why = planned("Hidden", no_subject=["Payments", "Others"])
    assert (tokens, unknown, sorted(why)) == ({}, 2, ["Hidden.csv"])
    assert "it cannot be searched; Choose#2 received it, and ran jobs" in why["Hidden.csv"]
    assert planned("Rates", "plain") == ({"Rates.csv": 1}, 0, {})  # jobs of another run of the session are not its own

    plan = graph.erase_plan(f"Payments.customer={SUBJECT}", run="w", no_subject=["Hidden", "Others"])
    (tmp_path / "plan.json").write_text(json.dumps(plan.to_dict()), encoding="utf-8")
    certificate = govtool.apply_erasure(tmp_path / "plan.json", to=tmp_path / "corrected", store=store).document
    copies = [(each["dataset"].rpartition("/in/")[2], each["verified"]) for each in certificate["datasets"]]
    assert copies == [(file, "searched") for file in files]
    assert len(certificate["not_written"]) == 2
