"""Statements of SQL that a replayed script may run: queries, and what stays within the catalog in memory."""

from __future__ import annotations

import re
from typing import Any

_CATALYST = "org.apache.spark.sql.catalyst.plans.logical"
CATALOGS = "spark.sql.catalog."
"""The prefix of settings that add catalogs, and would bring real tables within reach."""
_COMMANDS = (f"{_CATALYST}.Command", f"{_CATALYST}.ParsedStatement")
_OTHER_WRITES = ("InsertIntoDir", "ExecuteImmediate")
"""In the names of parsed statements that are no commands to Catalyst until they are analyzed."""
_WITH_SPEC = frozenset({"CreateTable", "CreateTableAsSelect", "ReplaceTable", "ReplaceTableAsSelect"})
_ALLOWED = frozenset(
    {
        *_WITH_SPEC, "InsertIntoStatement", "CreateView", "CreateViewCommand", "DropTable", "DropTableCommand",
        "DropView", "DropTempViewCommand", "CreateNamespace", "DropNamespace", "SetCatalogAndNamespace",
        "SetNamespaceCommand", "SetCommand", "ResetCommand", "CacheTable", "CacheTableAsSelect", "UncacheTable",
        "ClearCacheCommand", "RefreshTable", "ShowTables", "ShowNamespaces", "ShowNamespacesCommand", "ShowColumns",
        "ShowViews", "ShowFunctions", "DescribeRelation", "DescribeQueryCommand", "ExplainCommand", "CreateVariable",
        "SetVariable", "DropVariable", "TruncateTable",
    }
)  # fmt: skip


def refused_statement(session: Any, text: str, named: dict[str, Any]) -> tuple[Any, str]:
    """The parsed plan of a statement (None where it does not parse), and why it is not run; empty where it is."""
    plan = _parsed(session, text)
    if plan is None:  # with {names}, which PySpark fills in
        plan = _parsed(session, re.sub(r"\{[^{}]*\}", "x", text))
    if plan is None:
        return None, "a statement that cannot be checked" if named else ""
    problems = (_problem(each) for each in _commands(session, plan))
    return plan, next(filter(None, problems), "")


def _problem(plan: Any) -> str:
    """Why a command is not run; empty where it is."""
    kind = plan.getClass().getSimpleName()
    if kind not in _ALLOWED:
        return f"a statement of kind {kind}"
    if kind in _WITH_SPEC and _has_place(plan.tableSpec()):
        return "a statement with a place of its own"
    if kind == "SetCommand" and CATALOGS in plan.toString():
        return "SET of a catalog"
    if kind == "CreateNamespace" and "location" in plan.properties().toString().lower():
        return "a statement with a place of its own"
    if kind == "InsertIntoStatement" and "/" in (_target(plan) or "/"):
        return "an INSERT into a path"
    return ""


def _has_place(spec: Any) -> bool:
    options = spec.optionExpression().options()
    named = any(options.apply(n)._1().lower() == "path" for n in range(options.size()))
    return bool(spec.location().isDefined()) or named


def inserts(session: Any, plan: Any) -> list[tuple[str, Any]]:
    """The tables that a statement inserts rows into, each with the plan of its rows."""
    commands = [] if plan is None else _commands(session, plan)
    found = [each for each in commands if each.getClass().getSimpleName() == "InsertIntoStatement"]
    return [(_target(each), each.query()) for each in found]


def schema_of(session: Any, query: Any) -> str:
    """The schema of a parsed query as Spark's JSON; empty where it cannot be known before the statement is run."""
    for name in ("classic.Dataset", "Dataset"):  # PySpark 4, and 3.5
        try:
            kind = session._jvm
            for part in ("org", "apache", "spark", "sql", *name.split(".")):
                kind = getattr(kind, part)
            return str(kind.ofRows(session._jsparkSession, query).schema().json())
        except Exception:  # no such class, or names that WITH defines: the statement itself states what it lacks
            continue
    return ""


def _target(plan: Any) -> str:
    table = plan.table()
    if table.getClass().getSimpleName() != "UnresolvedRelation":
        return ""
    parts = table.multipartIdentifier()
    return ".".join(parts.apply(n) for n in range(parts.size()))


def _parsed(session: Any, text: str) -> Any:
    try:
        return session._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except Exception:  # a mistake in the script: the statement itself states it
        return None


def _commands(session: Any, plan: Any) -> list[Any]:
    """The commands of a plan: itself, or those below WITH and of an INSERT of several parts."""
    loader = session._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    kinds = [session._jvm.java.lang.Class.forName(name, False, loader) for name in _COMMANDS]
    found, left = [], [plan]
    while left:
        node = left.pop()
        name = node.getClass().getSimpleName()
        if any(other in name for other in _OTHER_WRITES) or any(kind.isInstance(node) for kind in kinds):
            found.append(node)
            continue
        below = node.children()
        left += [below.apply(n) for n in range(below.size())]
    return found
