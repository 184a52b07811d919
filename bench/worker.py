"""One lineage tool over a list of statements, where it is installed: ``worker.py TOOL < job > answer``.

A job is JSON ``{"statements": [...], "dialect": "...", "schema": {table: {column: type}}}``. The answer has the tool's
version, the seconds of each statement, and the statements that failed. It stands alone: it runs where govtool is not
installed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

Tool = Callable[[str, dict[str, Any]], int]
"""Reads one statement; returns how many output columns it found lineage for. It raises or returns 0 where it fails."""


def govtool_tool() -> Tool:
    """``extract()`` of one statement."""
    from govtool.capture.sql.extract import Options, extract
    from govtool.capture.sql.files import Script
    from govtool.capture.sql.schemas.supplied import schema_from_mapping

    known: dict[str, Any] = {}

    def run(sql: str, job: dict[str, Any]) -> int:
        if not known:
            known["schema"] = schema_from_mapping(job["schema"], job["dialect"])
        options = Options(dialect=job["dialect"], schema=known["schema"], evidence=False)
        made = extract([Script("q.sql", sql)], options).derivations
        return sum(len(d.columns) for d in made)

    return run


def sqlglot_tool() -> Tool:
    """``sqlglot.lineage`` of all output columns at once."""
    from sqlglot.lineage import lineage
    from sqlglot.schema import MappingSchema

    known: dict[str, Any] = {}

    def run(sql: str, job: dict[str, Any]) -> int:
        if not known:
            known["schema"] = MappingSchema(job["schema"], dialect=job["dialect"])
        return len(lineage(None, sql, known["schema"], dialect=job["dialect"]))

    return run


def sqlglot_prepared_tool() -> Tool:
    """``sqlglot.lineage`` by hand: parsed, qualified and scoped once, no copies, no trimming."""
    import sqlglot
    from sqlglot.lineage import lineage
    from sqlglot.optimizer.qualify import qualify
    from sqlglot.optimizer.scope import build_scope
    from sqlglot.schema import MappingSchema

    known: dict[str, Any] = {}

    def run(sql: str, job: dict[str, Any]) -> int:
        if not known:
            known["schema"] = MappingSchema(job["schema"], dialect=job["dialect"])
        schema = known["schema"]
        tree = qualify(sqlglot.parse_one(sql, read=job["dialect"]), schema=schema, dialect=job["dialect"])
        scope = build_scope(tree)
        names: list[str] = tree.named_selects  # type: ignore[attr-defined]
        for name in names:
            lineage(name, tree, schema, dialect=job["dialect"], scope=scope, trim_selects=False, copy=False)
        return len(names)

    return run


def sqlglot_by_column_tool() -> Tool:
    """``sqlglot.lineage`` called with the text of the statement for each of its output columns."""
    import sqlglot
    from sqlglot.lineage import lineage
    from sqlglot.optimizer.qualify import qualify
    from sqlglot.schema import MappingSchema

    known: dict[str, Any] = {}

    def run(sql: str, job: dict[str, Any]) -> int:
        if not known:
            known["schema"] = MappingSchema(job["schema"], dialect=job["dialect"])
        tree = qualify(sqlglot.parse_one(sql, read=job["dialect"]), schema=known["schema"], dialect=job["dialect"])
        names: list[str] = tree.named_selects  # type: ignore[attr-defined]
        for name in names:
            lineage(name, sql, known["schema"], dialect=job["dialect"])
        return len(names)

    return run


def sqllineage_tool() -> Tool:
    """``LineageRunner.get_column_lineage`` of ``INSERT INTO …``, as it reports nothing for a bare SELECT."""
    from sqllineage.runner import LineageRunner

    def run(sql: str, job: dict[str, Any]) -> int:
        paths = LineageRunner("INSERT INTO result_of_query " + sql, dialect="ansi").get_column_lineage()
        return len({str(path[-1]) for path in paths})

    return run


def lineagex_tool() -> Tool:
    """``LineageXNoConn`` of a list of one statement, with its schema."""
    from lineagex.LineageXNoConn import LineageXNoConn

    def run(sql: str, job: dict[str, Any]) -> int:
        tables = {name: list(columns) for name, columns in job["schema"].items()}
        found = LineageXNoConn(sql=[sql], dialect="postgres", input_table_dict=tables).output_dict
        return sum(len(item["columns"]) for item in found.values())

    return run


def openlineage_sql_tool() -> Tool:
    """``openlineage_sql.parse``, in Rust; it takes no schema."""
    from openlineage_sql import parse

    def run(sql: str, job: dict[str, Any]) -> int:
        found = parse([sql], job["dialect"] or "ansi")
        if found.errors:
            raise ValueError(str(found.errors[0].message))
        return len(found.column_lineage)

    return run


def sqllineage_rs_tool() -> Tool:
    """``sqllineage.analyze`` of sqllineage-rs, in Rust, with the schema as its catalog."""
    from sqllineage import analyze

    class Catalog:
        def __init__(self, schema: dict[str, dict[str, str]]) -> None:
            self.columns = {name.lower(): [column.lower() for column in columns] for name, columns in schema.items()}

        def list_columns(self, table: Any) -> list[str] | None:
            return self.columns.get(table.table.lower())

        def resolve_column(self, column: str, candidates: list[Any]) -> Any:
            having = [table for table in candidates if column.lower() in self.columns.get(table.table.lower(), ())]
            return having[0] if having else None

    known: dict[str, Any] = {}

    def run(sql: str, job: dict[str, Any]) -> int:
        if not known:
            known["catalog"] = Catalog(job["schema"])
        found = analyze(sql, dialect=job["dialect"] or "generic", catalog=known["catalog"])
        return sum(len(result.columns) for result in found)

    return run


TOOLS: dict[str, tuple[str, Callable[[], Tool]]] = {
    "govtool": ("govtool", govtool_tool),
    "sqlglot": ("sqlglot", sqlglot_tool),
    "sqlglot-prepared": ("sqlglot", sqlglot_prepared_tool),
    "sqlglot-by-column": ("sqlglot", sqlglot_by_column_tool),
    "sqllineage": ("sqllineage", sqllineage_tool),
    "lineagex": ("lineagex", lineagex_tool),
    "openlineage-sql": ("openlineage-sql", openlineage_sql_tool),
    "sqllineage-rs": ("sqllineage-rs", sqllineage_rs_tool),
}


def measure(name: str, job: dict[str, Any]) -> dict[str, Any]:
    """Run a tool over a job; the first statement is run once before, to load what it loads lazily."""
    package, make = TOOLS[name]
    tool = make()
    seconds: list[float] = []
    columns: list[int] = []
    failures: dict[int, str] = {}
    for number, sql in [(-1, job["statements"][0]), *enumerate(job["statements"])]:
        start = time.perf_counter()
        count = 0
        try:
            count = tool(sql, job)
            problem = "" if count else "no column found"
        except RecursionError:
            problem = "RecursionError"
        except Exception as error:  # A peer may raise anything; what it raises is the finding.
            problem = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        if number >= 0:
            seconds.append(time.perf_counter() - start)
            columns.append(count)
            if problem:
                failures[number] = problem
    return {"version": _version(package), "seconds": seconds, "columns": columns, "failures": failures}


def _version(package: str) -> str:
    try:
        return version(package)
    except ImportError:  # govtool from a checkout
        return "this"


def main() -> None:
    """Read a job from stdin, write the answer to stdout; what tools print, or write beside them, is thrown away."""
    job = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        before = Path.cwd()
        os.chdir(folder)
        answer = measure(sys.argv[1], job)
        os.chdir(before)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
