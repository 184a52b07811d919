"""What is the same in the tests of every lake format: a job of all cases, and the comparisons."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lake_cases import CHANGES, DEFINITIONS, DELETE_IN, EVOLVING, SCHEMA, SETUP, UPDATE_IN, WRITES, Case
from lake_jobs import Ran

from govtool.model import Derivation
from govtool.model.run import Run

START = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
"""


def job(cases: Sequence[Case], place: str, format: str, properties: str = "", more: str = "") -> str:
    """The text of a script that runs the statements of the set-up and of cases, then what else is wanted."""
    texts = [*SETUP, *(case.text for case in cases)]
    values = {"t": place, "format": format, "properties": properties}
    lines = [f"spark.sql({text.format(**values)!r})" for text in texts]
    return START + "\n".join(lines) + "\n" + more


def cases_of(*, subqueries: bool) -> list[Case]:
    """The cases, in the order in which they are run."""
    extra = [UPDATE_IN, DELETE_IN] if subqueries else []
    return [*CHANGES, *extra, EVOLVING, *WRITES, *DEFINITIONS]


def stated(ran: Ran, place: str, *, logged: bool = False, targets: str = ".*") -> list[tuple[str, frozenset[str]]]:
    """What was said of tables, in order: heads with edges, as cases have them; queries and views apart."""
    found = []
    for _, derivations in ran.logged() if logged else ran.live():
        for each in derivations:
            name = each.target.removeprefix(place)
            if each.target_kind == "query" or not re.fullmatch(targets, name):
                continue
            edges = (f"{e.target_path} <- {e.source.text.removeprefix(place)} {e.kind.label}" for e in each.edges)
            found.append((f"{name} {each.statement.kind} {each.mode}", frozenset(edges)))
    return found


def expected(cases: Sequence[Case]) -> list[tuple[str, frozenset[str]]]:
    """What cases say."""
    return [(case.stated, frozenset(case.edges)) for case in cases if case.stated]


def in_sql(case: Case) -> frozenset[str]:
    """What the SQL extractor says of the text of a case."""
    from govtool.capture.sql.extract import Options, extract
    from govtool.capture.sql.files import Script
    from govtool.capture.sql.schemas.supplied import schema_from_mapping

    schema = schema_from_mapping(SCHEMA, "spark")
    text = case.text.format(t="", format="delta", properties="")
    found = extract([Script("case.sql", text)], Options(dialect="spark", schema=schema))
    (derivation,) = found.derivations
    return frozenset(f"{e.target_path} <- {e.source.text} {e.kind.label}" for e in derivation.edges)


VALUES = frozenset({"identity", "transformation", "aggregation"})


def compared(ran: Ran) -> tuple[int, list[str], list[str]]:
    """What the event log says of the runs that wrote, beside the live session: how many are the same kind of
    statement with the same values flowing from other tables, which are broken off with a reason, and which differ.
    """
    logged = {run.id: (run, derivations) for run, derivations in ran.logged()}
    live = [(run, made) for run, made in ran.live() if made and made[0].target_kind != "query" and made[0].edges]
    batches = [each for id_, each in logged.items() if id_ not in {run.id for run, _ in live}]
    same, broken, other = 0, [], []
    for run, derivations in live:
        own, said_ = logged.get(run.id) or _of_stream(derivations[0], batches)
        name = f"{derivations[0].statement.kind} {derivations[0].target}"
        reasons = [note.code for note in own.breaks] if own is not None else []
        reasons += [edge.reason for each in said_[:1] for edge in each.edges if edge.reason]
        if (
            said_
            and said_[0].statement.kind == derivations[0].statement.kind
            and _values(said_[0]) == _values(derivations[0])
        ):
            same += 1
        elif reasons:
            broken.append(f"{name}: {reasons[0]}")
        else:
            other.append(name)
    return same, broken, other


def _of_stream(made: Derivation, batches: list[tuple[Run, list[Derivation]]]) -> tuple[Run | None, list[Derivation]]:
    """The batch that a log has of a stream, which is one run to a session."""
    table = made.target.rpartition(".")[2]
    for run, derivations in batches:
        if derivations and derivations[0].target.rpartition("/")[2] == table:  # a log has the folder of the table
            return run, derivations
    for run, derivations in batches:
        sunk = any(note.code == "break.streaming-sink" for note in run.breaks)
        if derivations and (derivations[0].target == made.target or sunk):
            return run, derivations
    return None, []


def _values(derivation: Derivation) -> frozenset[tuple[str, str, str]]:
    return frozenset(
        (edge.target_path, edge.source.text, edge.kind.label)
        for edge in derivation.edges
        if edge.kind.label in VALUES and edge.source.dataset != derivation.target
    )
