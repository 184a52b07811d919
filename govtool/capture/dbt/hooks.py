"""The SQL that a dbt project runs beside its models: ``on-run-start``, ``on-run-end`` and hooks in dbt_project.yml.

See https://docs.getdbt.com, "on-run-start & on-run-end" and "pre-hook & post-hook".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

_OF_RUNS: Final = ("on-run-start", "on-run-end")
_OF_NODES: Final = frozenset({"pre-hook", "post-hook", "+pre-hook", "+post-hook", "pre_hook", "post_hook"})
_TREES: Final = ("models", "seeds", "snapshots")
_THIS: Final = re.compile(r"\{\{-?\s*this\b")
"""The model that a hook is run for: any of those that the setting is for, so it is left unknown."""
_COMMENT: Final = re.compile(r"--|#")
_MOST: Final = 10_000
"""Settings that are looked at, and hooks; aliases of YAML can make them endless."""


def hook_sql(settings: Mapping[str, Any], text: str) -> str:
    """Return the SQL of the hooks as a script, each hook at the line of dbt_project.yml where it is written.

    Args:
        settings: The content of dbt_project.yml.
        text: Its text.

    Returns:
        The script; empty if there are no hooks.
    """
    written = text.splitlines()
    lines = [""] * len(written)
    ends: list[int] = []
    for hook in islice(_hooks(settings), _MOST):
        sql = hook.strip().rstrip(";")
        if not sql:
            continue
        first, *more = sql.splitlines()
        at = next((i for i, line in enumerate(written) if first in line and not lines[i]), len(lines))
        lines += [""] * (at + len(more) + 1 - len(lines))
        for number, line in enumerate((first, *more)):
            lines[at + number] += line
        ends.append(at + len(more))
    for end in sorted(ends, reverse=True):
        if _COMMENT.search(lines[end]):  # the line's end would be within it
            lines[end + 1 : end + 2] = [";" + "".join(lines[end + 1 : end + 2])]
        else:
            lines[end] += ";"
    return _THIS.sub("{{ each_model()", "\n".join(lines)) if any(lines) else ""


def _hooks(settings: Mapping[str, Any]) -> Iterator[str]:
    for name in _OF_RUNS:
        yield from _texts(settings.get(name))
    pending: list[object] = [settings.get(name) for name in _TREES]
    for _ in range(_MOST):
        if not pending:
            break
        at = pending.pop(0)
        if isinstance(at, dict):
            for name, value in at.items():
                if name in _OF_NODES:
                    yield from _texts(value)
                else:
                    pending.append(value)


def _texts(value: object) -> Iterator[str]:
    """The SQL of a hook: a text, ``{sql: …}``, or a list of these."""
    for item in value if isinstance(value, list) else [value]:
        sql = item.get("sql") if isinstance(item, dict) else item
        if isinstance(sql, str):
            yield sql
