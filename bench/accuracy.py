"""docs/accuracy.md: the extractor against databases and analyzers that know the answer.

python -m bench accuracy                    views and queries by the thousand, a few minutes
python -m bench accuracy --queries 300      fewer
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.oracles import perturb
from bench.oracles.cluster import Cluster
from bench.oracles.compare import ASPECTS, Outcome, compare_views
from bench.oracles.corpora import (
    EXPLAINED,
    EXPLAINED_GENERATED,
    EXPLAINED_SPARK,
    ONE_WIDTH,
    generated_views,
    tpc_queries,
    tpc_views,
    written_queries,
    written_spark,
    written_views,
)
from bench.oracles.schemas import compare_names
from bench.oracles.spark import compare_queries
from bench.oracles.strings import sqlglot_texts
from bench.page import machine, table
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script

PAGE = Path(__file__).resolve().parents[1] / "docs" / "accuracy.md"

_HEAD = """# Accuracy

Made by `scripts/accuracy`; do not edit. The same comparisons, smaller, are tests:
`tests/capture/sql/test_against_*.py` and `test_never_raises.py`.

"""

CHUNK = 1000
"""Views that are made at once."""


def write(queries: int) -> None:
    """Measure everything and write the page."""
    text = "\n".join([_postgres(queries), _spark(), _duckdb(queries), _texts()])
    PAGE.write_text(f"{_HEAD}{text}\n{machine()}\n")


# ---- PostgreSQL --------------------------------------------------------------------------------------


def _postgres(queries: int) -> str:
    outcomes: dict[str, Outcome] = {}
    with Cluster() as cluster:
        version = cluster.run("SHOW server_version")[0][0].split()[0]
        for name, (tables, views) in tpc_views().items():
            outcomes[name] = compare_views(cluster, tables, views)
        outcomes["hard, by hand"] = compare_views(cluster, *written_views())
        generated = Outcome([], {})
        for start in range(0, queries, CHUNK):
            seeds = range(start, min(start + CHUNK, queries))
            part = compare_views(cluster, *generated_views(seeds), ONE_WIDTH)
            generated.verdicts.extend(part.verdicts)
            generated.refused.update(part.refused)
        outcomes["generated"] = generated
    count = ["views", *(len(outcome.verdicts) for outcome in outcomes.values())]
    refused = ["refused by PostgreSQL", *(len(outcome.refused) for outcome in outcomes.values())]
    return f"""## Against PostgreSQL's own view trees

Every query is made a view in PostgreSQL {version}; what its parse tree (`pg_rewrite.ev_action`), `information_schema`
and `pg_depend` say is compared with what `extract()` says of the same text. A view counts as equal only if *every*
column of it is. In the last row, what contributes and what is referenced together are all columns that the tree uses,
and all of them are dependencies by `pg_depend`, which also holds what an inner query puts out and nothing reads.
"Generated": queries drawn by `bench/oracles/queries.py`, with joins, CTEs, set operations, windows, correlated
subqueries, and names that clash; of those, PostgreSQL refuses the ones that are not valid.

{table(["share of views that are equal", *outcomes], [count, refused, *_shares(outcomes, ASPECTS)])}

{_differences(outcomes, EXPLAINED | EXPLAINED_GENERATED)}
"""


def _shares(outcomes: Mapping[str, Outcome], aspects: Mapping[str, str]) -> list[list[object]]:
    """For each aspect, how many queries of each corpus agree in it."""
    return [
        [meaning, *(_rate(outcome.equal(aspect), len(outcome.verdicts)) for outcome in outcomes.values())]
        for aspect, meaning in aspects.items()
    ]


def _differences(outcomes: Mapping[str, Outcome], explained: Mapping[str, str]) -> str:
    """The differences that are explained, by query or name of a view, and those that are not."""
    lines = ["Differences that are explained:", "", *(f"* `{query}`: {reason}." for query, reason in explained.items())]
    different = [
        f"* `{verdict.view.name}`, {key}: {detail}"
        for outcome in outcomes.values()
        for verdict in outcome.verdicts
        if verdict.view.query not in explained and verdict.view.name not in explained
        for key, detail in verdict.differences.items()
    ]
    return "\n".join([*lines, *(["", "Not explained:", "", *different] if different else [])])


def _rate(equal: int, of: int) -> str:
    return f"{equal / of:.4f} ({equal}/{of})" if of else "–"


# ---- Spark -------------------------------------------------------------------------------------------


def _spark() -> str:
    outcomes: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory(prefix="govtool-spark-") as folder:
        session = _session(folder)
        try:
            version = session.version
            for name, (tables, queries) in tpc_queries().items():
                outcomes[name] = compare_queries(session, name.replace("-", "_").lower(), tables, queries)
            outcomes["hard, by hand"] = compare_queries(session, "hard_statements", *written_spark())
        finally:
            session.stop()
    aspects = {aspect: meaning for aspect, meaning in ASPECTS.items() if aspect != "depends"}
    count = ["statements", *(len(outcome.verdicts) for outcome in outcomes.values())]
    refused = ["refused by Spark", *(len(outcome.refused) for outcome in outcomes.values())]
    return f"""## Against Spark's own analyzer

The analyzed plan of every statement, by PySpark {version}, nothing run: expression ids say which column is which. The
hard statements (`fixtures/oracles/spark.sql`) have generators, lateral views, pivots, lateral aliases, structs, maps
and lambdas, merging joins, lateral and correlated subqueries, set operations, recursion, grouping sets, windows, pipes,
TRANSFORM and writes. A statement counts as equal only if *every* column of it is, by position.

{table(["share of statements that are equal", *outcomes], [count, refused, *_shares(outcomes, aspects)])}

Where the plan holds less than the text, the plan is read as the text: RANK takes no value though the plan gives it the
columns of its ORDER BY; the second step of a PIVOT undoes the grouping of the first by the pivot's column; a field of
a struct that was built in the query depends on that field alone; the key of an array or a map steers (`conditional`);
GROUPING(c) depends on c, as it does in PostgreSQL's tree. DISTRIBUTE BY and CLUSTER BY count as sorting.

{_differences(outcomes, EXPLAINED_SPARK)}
"""


def _session(folder: str) -> Any:
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[1]")
        .appName("govtool accuracy")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", folder)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session


# ---- DuckDB ------------------------------------------------------------------------------------------


def _duckdb(queries: int) -> str:
    import duckdb

    reports = {"generated": perturb.run(range(queries)), "hard, by hand": perturb.Report()}
    with perturb.Database() as database:
        for sql in written_queries():
            perturb.examine(database, sql, reports["hard, by hand"])
    rows = []
    for name, report in reports.items():
        rows.append(
            [
                name,
                report.queries,
                report.refused,
                report.outputs,
                report.runs,
                *(_rate(report.without(what), report.queries) for what in ("names", "diagnostics", "unsound")),
            ]
        )
    found = [f"* {f.what}, {f.detail}: `{f.sql}`" for report in reports.values() for f in report.findings]
    rest = "\nFound:\n\n" + "\n".join(found) + "\n" if found else ""
    named = ", ".join(
        f"{name} {_rate(names.queries - len(names.different), names.queries)}"
        for name, names in compare_names().items()
    )
    head = ["queries", "run", "refused", "outputs", "changes tried", "names equal", "nothing unresolved", "sound"]
    return f"""## Against what DuckDB does

DuckDB {duckdb.__version__} runs each query on small tables. For every output column, the values of all columns that the
extractor says reach neither it nor the rows are changed at once: the output's values must stay what they were
("sound"). That every kind of edge is needed for this is a test of its own: without any one of them, queries are found
that change.

{table(head, rows)}
{rest}
What decides only *how many* rows a value becomes is not followed, by design: the length of an array that is unnested,
the arguments of a set-returning function (they contribute to its columns). The generator avoids these, and what sqlglot
does not parse (FROM-first over VALUES) or DuckDB gets wrong (`* REPLACE` of a column that USING has merged puts it out
twice; 2.0.0 crashes on some of the queries, hence the version).

Names and order of the output columns (`DESCRIBE`): {named}.
"""


# ---- sqlglot's texts ---------------------------------------------------------------------------------


def _texts() -> str:
    counts: Counter[str] = Counter()
    raised = 0
    for dialect, text in sqlglot_texts():
        counts["texts"] += 1
        try:
            extraction = extract([Script("text.sql", text)], Options(dialect=dialect, evidence=False))
        except Exception:  # what must not happen is counted, not hidden
            raised += 1
            continue
        raised += any("could not be analysed" in note.message for note in extraction.diagnostics)
        for key in ("statements", "understood", "partial", "opaque", "ignored"):
            counts[key] += getattr(extraction, key)
    row = [counts["texts"], counts["understood"], counts["partial"], counts["opaque"], counts["ignored"], raised]
    head = ["texts", "understood", "partial", "opaque", "without lineage", "raised"]
    return f"""## On the texts of sqlglot's own tests

All fixtures of the optimizer and all strings of the tests of dialects, in their dialects; many are no statements but
expressions, and "opaque" is the right answer to those. "Partial" is mostly `*` over a table that nothing defines.

{table(head, [row])}
"""
