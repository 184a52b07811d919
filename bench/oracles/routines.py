"""Runs PL/pgSQL functions in PostgreSQL on changed data and without columns, and compares with ``impact``.

``fixtures/oracles/routines.sql`` has bodies that count rows, leave early and decide by queries. Where a function fails
without a column, a drop of that column must have a verdict; where other values of a column give other rows in a table,
this table must have one. What the bodies name as ``without`` a verdict is out of reach, and must be missed.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.oracles.cluster import FIELD, Cluster
from bench.oracles.objects import reached
from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.graph.index import Index
from govtool.model import ColumnRef
from govtool.query.changes.change import Change

CASES = Path(__file__).parents[2] / "fixtures" / "oracles" / "routines.sql"
TABLES = {
    "s": ("a", "c", "d"),
    "t": ("a", "b"),
    "u": ("x", "y"),
    "log": ("m",),
    "all_s": ("a", "c", "d", "k"),
    "all_t": ("a", "b", "k"),
}
WRITTEN = ("u", "log")
CHANGED = ("s", "t")
"""The tables whose columns are changed."""
_DDL = "".join(
    f"CREATE TABLE {table} ({', '.join(f'{c} int' for c in columns)});\n" for table, columns in TABLES.items()
)
_LOADS = "INSERT INTO s SELECT a, c, d FROM all_s WHERE k > 3; INSERT INTO t SELECT a, b FROM all_t WHERE k > 3;\n"
"""Fills the tables from others, whose column ``k`` decides which rows they have."""
_GATES = ("all_s", "all_t")
_CALLED = "CREATE FUNCTION g(p int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO u VALUES (p, 0); END $$;\n"
_FUNCTION = """CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$
DECLARE n int; k int := 0; r record; q record; cur refcursor;
BEGIN
{}
END $$;
"""
_ATTEMPT = """CREATE FUNCTION attempt() RETURNS text LANGUAGE plpgsql AS $$
BEGIN PERFORM f(); RETURN 'done'; EXCEPTION WHEN others THEN RETURN SQLSTATE; END $$;
"""
_RAISED = "P0001"
"""The error of RAISE, which a body decides to raise; errors of other kinds say nothing about rows."""
_HEAD = re.compile(r"(?P<title>.*?)(?:, without (?P<without>.+))?\Z")

World = dict[str, list[list[int]]]
"""Rows by table."""


@dataclass(frozen=True)
class Case:
    """A body, and the relations that change without a verdict."""

    title: str
    body: str
    without: frozenset[str]

    @property
    def script(self) -> str:
        """The tables and the functions."""
        return _DDL + _LOADS + _CALLED + _FUNCTION.format(self.body)


@dataclass(frozen=True)
class Missed:
    """What minds a change of a column, and has no verdict."""

    change: str
    column: str
    relation: str
    """Whose rows are others; "" where the function fails."""


def cases(path: Path = CASES) -> list[Case]:
    """The cases of a file."""
    found = []
    for block in path.read_text().split("-- case ")[1:]:
        head, _, body = block.partition("\n")
        match = _HEAD.match(head)
        assert match is not None
        found.append(Case(match["title"], body, frozenset((match["without"] or "").split(", ")) - {""}))
    return found


def missed(cluster: Cluster, case: Case, seed: int, rounds: int = 4) -> list[Missed]:
    """Run one case on random data and return what ``impact`` misses of it."""
    chance = random.Random(seed)
    index = index_of(extract([Script("s.sql", case.script)], Options(dialect="postgres")).derivations)
    columns = [(table, column) for table in CHANGED for column in TABLES[table]]
    wanted: list[tuple[str, str, World, str]] = []
    for _ in range(rounds):
        world = {table: _rows(len(columns_of), chance) for table, columns_of in TABLES.items()}
        wanted.append(("", "", world, ""))
        for table, column in columns:
            wanted.append((f"{table}.{column}", "drop", world, f"ALTER TABLE {table} DROP COLUMN {column};"))
            wanted += [(f"{table}.{column}", "logic", _changed(world, table, column, chance), "") for _ in range(4)]
        gated = {**world, **{table: [] for table in CHANGED}}
        wanted.append(("", "", gated, ""))
        wanted += [
            (f"{table}.k", "logic", _changed(gated, table, "k", chance), "") for table in _GATES for _ in range(4)
        ]
    return sorted(set(_compared(index, wanted, _outcomes(cluster, case, wanted))), key=repr)


def _rows(width: int, chance: random.Random) -> list[list[int]]:
    return [[chance.randint(0, 6) for _ in range(width)] for _ in range(chance.randint(2, 5))]


def _changed(world: World, table: str, column: str, chance: random.Random) -> World:
    """The same rows with other values of one column."""
    place = TABLES[table].index(column)
    rows = [list(row) for row in world[table]]
    for row in rows:
        if chance.random() < 0.6:
            row[place] = chance.randint(0, 6)
    return {**world, table: rows}


def _outcomes(cluster: Cluster, case: Case, wanted: list[tuple[str, str, World, str]]) -> list[list[str]]:
    """``done`` or the code of the error, and the rows of the written tables behind it."""
    script = [
        "DROP SCHEMA IF EXISTS o CASCADE; CREATE SCHEMA o; SET search_path = o, pg_catalog;",
        case.script,
        _ATTEMPT,
    ]
    texts = ", ".join(
        f"(SELECT string_agg({table}::text, ' ' ORDER BY {table}::text) FROM {table})" for table in WRITTEN
    )
    for _, _, world, change in wanted:
        filled = "".join(f"INSERT INTO {table} VALUES {_values(rows)};" for table, rows in world.items() if rows)
        loads = "" if all(world[table] for table in CHANGED) else _LOADS
        script.append(f"BEGIN; {filled} {loads} {change} CREATE TEMP TABLE came ON COMMIT DROP AS SELECT attempt();")
        script.append(f"SELECT 'row', (TABLE came), {texts}; ROLLBACK;")
    lines = "\n".join([FIELD.join(row) for row in cluster.run("\n".join(script))]).split("\n")
    answers = [line.split(FIELD)[1:] for line in lines if line.startswith("row")]
    assert len(answers) == len(wanted)
    return answers


def _values(rows: list[list[int]]) -> str:
    return ", ".join(f"({', '.join(map(str, row))})" for row in rows)


def _compared(index: Index, wanted: list[tuple[str, str, World, str]], found: list[list[str]]) -> Iterator[Missed]:
    plain: list[str] = []
    known: dict[tuple[str, str], set[str]] = {}
    for (column, change, _, _), outcome in zip(wanted, found, strict=True):
        if not column:
            plain = outcome
            continue
        if plain[0] != "done":
            continue
        if (column, change) not in known:
            known[column, change] = reached(index, ColumnRef(*column.split(".")), Change(change, None))
        relations = known[column, change]
        if change == "drop" and outcome[0] != "done" and not relations:
            yield Missed(change, column, "")
        if outcome[0] not in ("done", _RAISED):
            continue
        for number, table in enumerate(WRITTEN, 1):
            if change == "logic" and outcome[number] != plain[number] and table not in relations:
                yield Missed(change, column, table)


def main() -> None:
    """Run the cases and print what is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    wrong = 0
    with Cluster() as cluster:
        for case in cases():
            for each in missed(cluster, case, options.seed, options.rounds):
                if each.relation not in case.without:
                    wrong += 1
                    print(f"{case.title}: {each.change} of {each.column} {each.relation or 'fails'}")
    print(f"{len(cases())} functions, {wrong} missed")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
