"""Sets the extractor's answer about Spark SQL beside what Spark's own analyzer says. Nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.oracles.compare import ASPECTS, Outcome, Tables, Verdict, View, judge, plain
from bench.oracles.spark_plan import NotReadError, PlanLineage, lineage_of
from bench.oracles.views import ViewLineage
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.schemas.supplied import schema_from_mapping
from govtool.model import Derivation

DIALECT = "spark"

PARTITION = " partition"
"""Behind the type of a column by which a table is partitioned."""


def compare_queries(spark: Any, database: str, tables: Tables, queries: Sequence[View]) -> Outcome:
    """Make the tables in a database of their own, analyze and extract the queries, and compare.

    Args:
        spark: A session, not of Spark Connect: the plan is read over py4j.
        database: A name for the database; it is dropped again.
        tables: Columns with their types by table.
        queries: Queries and commands; ``View.query`` is the text.
    """
    before = spark.catalog.currentDatabase()
    spark.sql(f"CREATE DATABASE {database}")
    try:
        spark.sql(f"USE {database}")
        for name, columns in tables.items():
            listed = ", ".join(f"{column} {type_.removesuffix(PARTITION)}" for column, type_ in columns.items())
            by = [column for column, type_ in columns.items() if type_.endswith(PARTITION)]
            spread = f" PARTITIONED BY ({', '.join(by)})" if by else ""
            spark.sql(f"CREATE TABLE {name} ({listed}) USING parquet{spread}")
        plain_types = {
            name: {column: type_.removesuffix(PARTITION) for column, type_ in columns.items()}
            for name, columns in tables.items()
        }
        return _compare(spark, plain_types, queries)
    finally:
        spark.sql(f"USE {before}")
        spark.sql(f"DROP DATABASE {database} CASCADE")


def _compare(spark: Any, tables: Tables, queries: Sequence[View]) -> Outcome:
    refused: dict[str, str] = {}
    truths: dict[str, PlanLineage] = {}
    for query in queries:
        try:
            truths[query.name] = lineage_of(analyzed(spark, query.query))
        except NotReadError as error:
            refused[query.name] = f"not known to the oracle: {error}"
        except Exception as error:  # py4j wraps Spark's exceptions
            refused[query.name] = str(getattr(error, "java_exception", error)).split("\n")[0][:300]
    made = [query for query in queries if query.name in truths]
    schema = schema_from_mapping(tables, DIALECT)
    verdicts = []
    for query in made:  # each on its own: the same name may be filled by several
        extraction = extract(
            [Script("query.sql", query.query)], Options(dialect=DIALECT, schema=schema, evidence=False)
        )
        found = [d for d in extraction.derivations if d.mode not in ("declare", "drop")]
        verdicts.append(_verdict(query, truths[query.name], found, tables))
    return Outcome(verdicts, refused)


def analyzed(spark: Any, query: str) -> Any:
    """The analyzed plan of a query or command that is not run."""
    state = spark._jsparkSession.sessionState()
    mode = spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    return state.executePlan(state.sqlParser().parsePlan(query), mode).analyzed()


def _verdict(query: View, truth: PlanLineage, found: list[Derivation], tables: Tables) -> Verdict:
    if len(found) != 1:
        verdict = Verdict(query)
        verdict.differences.update(dict.fromkeys(ASPECTS, f"{len(found)} derivations"))
        return verdict
    (derivation,) = found
    names = list(truth.names)
    if derivation.mode in ("append", "replace") and plain(derivation.target) in tables:
        # An INSERT with a list of columns: Spark adds those that are left out, as NULL or default.
        written = {plain(column.path) for column in derivation.columns}
        kept = [position for position, name in enumerate(names) if name.lower() in written]
        order = {plain(column.path): number for number, column in enumerate(derivation.columns)}
        kept.sort(key=lambda position: order[names[position].lower()])
    else:
        kept = list(range(len(names)))
    made = ViewLineage(
        [_shown(names[position], derivation, number) for number, position in enumerate(kept)],
        [truth.contributed[position] for position in kept],
        truth.referenced,
    )
    made.depends = made.columns
    return judge(query, made, derivation, references=False)


def _shown(name: str, derivation: Derivation, number: int) -> str:
    """Our name where Spark's is the text of an expression: such a column has no name of its own."""
    ours = plain(derivation.columns[number].path) if number < len(derivation.columns) else ""
    return ours if ours == f"_c{number}" else name.lower() if ours == ours.lower() else name
