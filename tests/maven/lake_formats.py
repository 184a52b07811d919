"""What is the same in the tests of every lake format: a job of all cases, and the comparisons."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lake_cases import CHANGES, DEFINITIONS, DELETE_IN, EVOLVING, SCHEMA, SETUP, UPDATE_IN, WRITES, Case
from lake_jobs import Ran

from govtool.model import Derivation

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


def said(ran: Ran, place: str, *, logged: bool = False, targets: str = ".*") -> list[tuple[str, frozenset[str]]]:
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
    return [(case.said, frozenset(case.edges)) for case in cases if case.said]


def in_sql(case: Case) -> frozenset[str]:
    """What the SQL extractor says of the text of a case."""
    from govtool.capture.sql.extract import Options, extract
    from govtool.capture.sql.files import Script
    from govtool.capture.sql.schema import schema_from_mapping

    schema = schema_from_mapping(SCHEMA, "spark")
    text = case.text.format(t="", format="delta", properties="")
    found = extract([Script("case.sql", text)], Options(dialect="spark", schema=schema))
    (derivation,) = found.derivations
    return frozenset(f"{e.target_path} <- {e.source.text} {e.kind.label}" for e in derivation.edges)


VALUES = frozenset({"identity", "transformation", "aggregation"})


def compared(ran: Ran) -> tuple[int, list[str], list[str]]:
    """What the event log says of the runs that wrote, beside the live session: how many have the same value flow from
    other tables, which are broken off with a reason, and which differ.
    """
    logged = {run.id: (run, derivations) for run, derivations in ran.logged()}
    same, broken, other = 0, [], []
    for run, derivations in ran.live():
        if not derivations or derivations[0].target_kind == "query" or not derivations[0].edges:
            continue
        own, said_ = logged.get(run.id, (None, []))
        name = f"{derivations[0].statement.kind} {derivations[0].target}"
        if said_ and _values(said_[0]) == _values(derivations[0]):
            same += 1
        elif own is not None and own.breaks:
            broken.append(f"{name}: {own.breaks[0].code}")
        else:
            other.append(name)
    return same, broken, other


def _values(derivation: Derivation) -> frozenset[tuple[str, str, str]]:
    return frozenset(
        (edge.target_path, edge.source.text, edge.kind.label)
        for edge in derivation.edges
        if edge.kind.label in VALUES and edge.source.dataset != derivation.target
    )
