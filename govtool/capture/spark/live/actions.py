"""Executions of one root, as a session's listener heard of them."""

from __future__ import annotations

from collections.abc import Iterable

from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.read import read_plan
from govtool.capture.spark.analyzed.tree import nodes_of, tree_of
from govtool.capture.spark.live.spool import Line

_STREAM = "stream"
"""A streaming query as a whole, which has no number: each writes for itself, even if two write the same query."""


def grouped(executions: Iterable[Line]) -> list[list[Line]]:
    """Executions by root, in order of their end; an execution without a number stands alone, unless the next one
    writes what it wrote. Each command of a multi-insert is an execution of its own.
    """
    found: list[list[Line]] = []
    for group in _by_root(executions):
        singles = [_single(line) for line in group]
        together = [parts[0] for parts in singles if len(parts) == 1]
        apart = [[part] for parts in singles if len(parts) > 1 for part in parts]
        found += [together, *apart] if together else apart
    return found


def _by_root(executions: Iterable[Line]) -> list[list[Line]]:
    groups: dict[tuple[str, object], list[Line]] = {}
    for line in executions:
        root = line.get("root", line.get("execution"))
        key = (str(line.get("application", "")), root if root is not None else f"n{line.get('n')}")
        groups.setdefault(key, []).append(line)
    found: list[list[Line]] = []
    for group in groups.values():
        alone = group[0].get("execution") is None and group[0].get("name") != _STREAM
        if alone and found and found[-1][0].get("execution") is None and _same_query(found[-1][-1], group[0]):
            found[-1].extend(group)
        else:
            found.append(group)
    return found


def _single(line: Line) -> list[Line]:
    """A multi-insert, a union of commands in one execution, as an execution for each."""
    facts = line.get("commands")
    if not isinstance(facts, list) or not isinstance(line.get("plan"), list):
        return [line]
    try:
        children = tree_of(line["plan"]).children
    except (ValueError, TypeError, AttributeError):
        return [line]
    if len(children) != len(facts):
        return [line]
    made: list[Line] = []
    for number, (child, child_facts) in enumerate(zip(children, facts, strict=True)):
        part = f"{line.get('execution', line.get('query'))}.{number}"
        made.append(
            {**line, "plan": nodes_of(child), "command": child_facts, "execution": part, "root": part, "metrics": {}}
        )
    return made


def _same_query(before: Line, after: Line) -> bool:
    """Return whether two executions without numbers are one action: both write, and the same columns by their ids."""
    return bool(before.get("command")) and bool(after.get("command")) and _ids(before) == _ids(after) != ()


def _ids(line: Line) -> tuple[object, ...]:
    try:
        root = read_plan(line).root
        return () if isinstance(root, p.Modify) else tuple(output.id for output in p.outputs_of(root))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return ()
