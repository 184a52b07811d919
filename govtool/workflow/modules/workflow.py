"""Workflows: a DAG of module uses (Definition 2.2), validated before it runs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from govtool.workflow.modules.module_graph import ModuleGraph

if TYPE_CHECKING:
    from govtool.workflow.modules.schedule import Schedule
    from govtool.workflow.modules.violations import Violation


class Workflow(ModuleGraph):
    """A connected DAG of module uses. ``violations`` finds what is wrong with it; a run refuses one that has any.

    Its arguments and attributes are those of ``ModuleGraph``.
    """

    def violations(self) -> tuple[Violation, ...]:
        """All that is wrong with the workflow; empty: it can run."""
        from govtool.workflow.modules.validate import find_violations

        return find_violations(self)

    def validated(self) -> Schedule:
        """Return the order in which it runs.

        Raises:
            InvalidWorkflowError: It has violations.
        """
        return self._schedule

    @cached_property
    def _schedule(self) -> Schedule:
        from govtool.workflow.modules.schedule import make_schedule
        from govtool.workflow.modules.validate import require_valid

        require_valid(self)
        return make_schedule(self)
