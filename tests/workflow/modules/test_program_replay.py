"""Deletions in runs of programs: what propagation leaves open is evaluated again by the recorded plans."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import govtool
from govtool.cli.main import main
from govtool.errors import UnknownNameError

AMOUNTS = [0, 13, 9, 5, 1, 14, 10, 6]
SCRIPT = """
create table big as select id, who, amount from orders where amount > 1;
create table top as select id from big order by amount desc limit 2;
create table firsts as select who, id from
    (select who, id, row_number() over (partition by who order by amount desc) as r from big) as ranked where r = 1;
create table idle as select who from people where who not in (select who from big);
"""


@pytest.fixture
def deleted(tmp_path, monkeypatch, capsys):
    """Run the script over some amounts; what deletions of orders make of the run, by mode."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.sql").write_text(SCRIPT)
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"who": ["a", "b", "c", "d"]}), tmp_path / "in/people.parquet")
    assert main(["init"]) == 0

    def run(amounts, modes, orders):
        ids = range(len(amounts))
        columns = {"id": pa.array(ids, pa.int64()), "who": ["abc"[i % 3] for i in ids], "amount": amounts}
        pq.write_table(pa.table(columns), tmp_path / "in/orders.parquet")
        assert main(["workflow", "run", "job.sql", "--inputs", "in"]) == 0
        graph = govtool.open()
        (name,) = [each.name for each in (tmp_path / "job.state").iterdir() if each.is_dir()]
        tokens = [f"{token(graph, name)}/{order}" for order in orders]
        return [graph.workflow_deletions(name, [[each] for each in tokens], mode=mode) for mode in modes]

    return run


def token(graph, run):
    """The tokens of the orders without the number of the row."""
    with pytest.raises(UnknownNameError) as refused:
        graph.workflow_deletions(run, [["none"]])
    return refused.value.hint.partition("for example, ")[2].partition("/0;")[0]


def after(answer, relation):
    found = answer.relations[relation]
    return sorted([row.after for _, row in found.rows if row.after is not None] + list(found.gains))


def expected(without):
    big = [(i, "abc"[i % 3], n) for i, n in enumerate(AMOUNTS) if n > 1 and i != without]
    best = sorted(big, key=lambda row: -row[2])
    firsts = {who: i for i, who, _ in reversed(best)}
    return {
        "top": sorted((i,) for i, _, _ in best[:2]),
        "firsts": sorted(firsts.items()),
        "idle": sorted((who,) for who in "abcd" if who not in firsts),
    }


def test_ranks_top_k_and_not_in_are_evaluated_again(deleted):
    orders = (1, 5, 7)
    for answers in deleted(AMOUNTS, ["auto", "replay"], orders):
        for order, answer in zip(orders, answers, strict=True):
            assert not answer.is_unclear()
            assert not answer.not_replayable
            assert {name: after(answer, name) for name in ("top", "firsts", "idle")} == expected(order)


def test_rows_that_tie_without_the_records_are_named(deleted):
    """The run itself had no ties: without the fifth order, two of 13 tie for the last place."""
    amounts = [0, 13, 9, 20, 1, 14, 13, 6]
    ((answer,),) = deleted(amounts, ["auto"], [5])
    assert "rows tie at a limit" in answer.not_replayable["1/top@1"]
    assert {row.status for _, row in answer.relations["top"].rows} >= {"unknown"}
    assert "firsts" not in "".join(answer.not_replayable)
