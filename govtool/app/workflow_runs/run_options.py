"""Options of a run of a workflow: those that only Python has, and those that only SQL has."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from govtool.errors import UnknownNameError, UsageError


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of ``govtool workflow run`` that not every kind of workflow has.

    Attributes:
        executions: How many executions the sequence is to have in all.
        mode: How much is captured, of ``MODES``.
        settings: Settings of a new Spark session.
        spark: A Spark session.
        dialect: What SQL is written in.
    """

    executions: int | None = None
    mode: str = "columns"
    settings: Mapping[str, str] | None = None
    spark: Any = None
    dialect: str | None = None

    def check(self, *, sql: bool) -> None:
        """Refuse what a workflow of this kind would ignore.

        Raises:
            UnknownNameError: There is no such mode (``usage.unknown-mode``).
            UsageError: An option does not apply (``usage.arguments``).
        """
        from govtool.app.workflow_runs.run import MODES

        if self.mode not in MODES:
            raise UnknownNameError(
                f"no mode {self.mode!r}",
                code="usage.unknown-mode",
                nearest=tuple(difflib.get_close_matches(self.mode, MODES)),
                hint=f"one of {', '.join(MODES)}",
            )
        if not sql and self.dialect is not None:
            raise UsageError(
                "--dialect applies only to SQL", code="usage.arguments", hint="a workflow in Python has none"
            )
        only_python = {
            "--executions": self.executions is not None,
            "--untracked": self.mode == "untracked",
            "--records=eager": self.mode == "eager",
            "--conf": bool(self.settings),
            "a Spark session": self.spark is not None,
        }
        for name, is_given in only_python.items():
            if sql and is_given:
                raise UsageError(
                    f"{name} applies only to workflows in Python", code="usage.arguments", hint="leave it out"
                )
