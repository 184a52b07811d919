"""Drops, renames and retypes each column of small PostgreSQL schemas, and compares what minds with ``impact``.

``fixtures/oracles/objects.sql`` has schemas of what else than views hangs on columns: generated columns, foreign keys,
policies, triggers, publications, and statements that are run behind a change. A column is changed with ALTER TABLE.
What PostgreSQL names as a reason to refuse, and every later statement that fails, must have a verdict.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import sqlglot
from sqlglot import exp

from bench.oracles.cluster import Cluster
from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.graph.index import Index
from govtool.model import ColumnRef
from govtool.query.changes.change import Change
from govtool.query.changes.impact import expand, impact
from govtool.query.selection.select import Subject

CASES = Path(__file__).parents[2] / "fixtures" / "oracles" / "objects.sql"
USES = "-- then"
"""The line behind which statements run after the change."""
CHANGES = {"drop": None, "rename": "new_name", "retype": "text[]"}
_ALTER = {
    "drop": "ALTER TABLE {0} DROP COLUMN {1}",
    "rename": "ALTER TABLE {0} RENAME COLUMN {1} TO new_name",
    "retype": "ALTER TABLE {0} ALTER COLUMN {1} TYPE text[] USING NULL",
}
_DEPENDANT = re.compile(
    r"(?m)^(?:(?P<column>column \S+) of table (?P<of>\S+)|(?:materialized )?view (?P<view>\S+)"
    r"|rule \S+ on (?:materialized )?view (?P<ruled>\S+)"
    r"|(?P<kind>trigger|policy|constraint|rule) \S+ on table (?P<on>\S+)"
    r"|(?P<routine>function|publication) .*?) depends on"
)


_PATH = "SET search_path = o, pg_catalog;\n"
_ATTEMPT = """
create function attempt(statement text) returns text language plpgsql as $$
declare detail text;
begin
    if statement <> '' then execute statement; end if;
    return 'done';
exception when others then
    get stacked diagnostics detail = pg_exception_detail;
    return replace(sqlerrm || E'\\n' || detail, E'\\n', ' | ');
end $$;
"""
_UNKEPT = re.compile(r'foreign key constraint "(\w+)" cannot be implemented')


@dataclass(frozen=True)
class Case:
    """A schema, and the statements behind a change."""

    title: str
    schema: str
    uses: tuple[str, ...]


@dataclass(frozen=True)
class Missed:
    """What minds a change, and has no verdict."""

    title: str
    change: str
    subject: str
    dependant: str
    """A relation, and what PostgreSQL says of it."""


@dataclass
class Report:
    """What all cases showed."""

    questions: int = 0
    """Changes of a column."""
    dependants: int = 0
    """What minds them: by name of a relation."""
    missed: list[Missed] = field(default_factory=list)
    broken: list[tuple[str, str]] = field(default_factory=list)
    """Cases that PostgreSQL does not take, with its message."""


def cases(path: Path = CASES) -> list[Case]:
    """The cases of a file: a title behind ``-- case``, a script, and what runs behind the change."""
    found = []
    for block in path.read_text().split("-- case ")[1:]:
        title, _, text = block.partition("\n")
        schema, _, uses = text.partition(f"{USES}\n")
        found.append(Case(title, schema, tuple(one.strip() for one in uses.split(";\n") if one.strip())))
    return found


def run(cluster: Cluster, chosen: list[Case]) -> Report:
    """Examine cases."""
    report = Report()
    for case in chosen:
        _examine(cluster, case, report)
    return report


def _examine(cluster: Cluster, case: Case, report: Report) -> None:
    uses = "".join(f";\n{use}" for use in case.uses)
    index = index_of(extract([Script("s.sql", case.schema + uses)], Options(dialect="postgres")).derivations)
    columns, constraints = _made(cluster, case)
    changes = [(table, column, change) for table, column in columns for change in CHANGES]
    untouched, *outcomes = _outcomes(cluster, case, ["", *(_ALTER[c].format(t, name) for t, name, c in changes)])
    report.broken += [(case.title, error) for error in untouched.failing.values()]
    for (table, column, change), found in zip(changes, outcomes, strict=True):
        report.questions += 1
        known = reached(index, ColumnRef(table, column), Change(change, CHANGES[change]))
        for relation, why in found.dependants(table, constraints):
            report.dependants += 1
            if relation not in known and not (relation == "" and known):
                report.missed.append(Missed(case.title, change, f"{table}.{column}", f"{relation}: {why}"))


@dataclass
class _Outcome:
    refusal: str
    """PostgreSQL's message, with its details; empty where it makes the change."""
    failing: dict[str, str]
    """Messages by statement behind the change."""

    def dependants(self, subject: str, constraints: dict[str, str]) -> Iterator[tuple[str, str]]:
        """Relations that mind, and why; "" where it is not one relation that does.

        A type that the table's own foreign key forbids is a matter of the column itself.
        """
        unkept = _UNKEPT.search(self.refusal)
        if unkept and constraints[unkept[1]] != subject:
            yield constraints[unkept[1]], unkept[0]
        for found in _DEPENDANT.finditer(self.refusal):
            relation = found["of"] or found["view"] or found["ruled"] or found["on"] or ""
            yield "" if found["kind"] == "trigger" or found["routine"] else relation, found[0]
        for use, error in self.failing.items():
            yield _target(use), f"{use}: {error}"


def _made(cluster: Cluster, case: Case) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Make the schema of a case; return the columns of its tables, and the tables of its foreign keys."""
    cluster.run("DROP SCHEMA IF EXISTS o CASCADE; DROP PUBLICATION IF EXISTS pub; CREATE SCHEMA o;")
    cluster.run(_PATH + case.schema + _ATTEMPT)
    columns = cluster.run(
        "SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
        " WHERE c.relnamespace = 'o'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
        " ORDER BY 1, a.attnum"
    )
    keys = cluster.run("SELECT conname, conrelid::regclass FROM pg_constraint WHERE contype = 'f'")
    return [(table, column) for table, column in columns], {name: table.removeprefix("o.") for name, table in keys}


def _outcomes(cluster: Cluster, case: Case, changes: list[str]) -> list[_Outcome]:
    """Make changes one at a time, and run what is behind. A column that others need is dropped with CASCADE then."""
    script = [_PATH]
    for change in changes:
        second = f"{change} CASCADE" if " DROP COLUMN " in change else change
        statements = "".join(f"SELECT attempt($s${use}$s$);\n" for use in case.uses)
        script.append(f"BEGIN; SELECT attempt($s${change}$s$);\nSELECT attempt($s${second}$s$);\n{statements}ROLLBACK;")
    ((answer,),) = cluster.run("\n".join(script))
    answers = ["" if line == "done" else line.replace(" | ", "\n") for line in answer.split("\n")]
    width = 2 + len(case.uses)
    found = []
    for at in range(0, len(changes) * width, width):
        refusal, _, *errors = answers[at : at + width]
        found.append(_Outcome(refusal, {use: error for use, error in zip(case.uses, errors, strict=True) if error}))
    return found


def _target(use: str) -> str:
    """The relation that a statement writes; "" for a query."""
    tree = sqlglot.parse_one(use, dialect="postgres")
    target = tree.this if isinstance(tree, (exp.Insert, exp.Update, exp.Delete, exp.Merge)) else None
    table = target.find(exp.Table) if target is not None else None
    return table.name if table is not None else ""


def reached(index: Index, column: ColumnRef, change: Change) -> set[str]:
    """The relations that have a verdict."""
    node = index.find(column)
    if node is None:
        return set()
    subject = Subject(index.node_dataset[node], node, index.name(node))
    result = impact(index, subject, change=change)
    return {one.column.rpartition(".")[0] for one in expand(index, result) if one.verdict is not None}


def main() -> None:
    """Examine the cases and print what is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", default="", help="only cases whose title has this text")
    arguments = parser.parse_args()
    with Cluster() as cluster:
        chosen = [case for case in cases() if arguments.case in case.title]
        report = run(cluster, chosen)
    print(f"{len(chosen)} schemas, {report.questions} changes, {report.dependants} dependants,", end=" ")
    print(f"{len(report.missed)} of them without a verdict")
    for one in (*report.missed, *report.broken):
        print(one)
    sys.exit(bool(report.missed or report.broken))


if __name__ == "__main__":
    main()
