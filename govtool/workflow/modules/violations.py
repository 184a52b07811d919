"""Violations: rules that a workflow breaks, in words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.errors import UsageError

if TYPE_CHECKING:
    from govtool.workflow.modules.module_graph import DataEdge


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a workflow breaks.

    Attributes:
        rule: The rule: ``name``, ``module``, ``edge``, ``inputs``, ``cycle``, ``connected``, ``state`` …
        message: What is wrong, with the names of nodes and relations.
        nodes: The nodes that it is about.
        relations: The relations that it is about.
        nearest: Names that may have been meant.
    """

    rule: str
    message: str
    nodes: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The message, with the nearest names."""
        return self.message + (f" (did you mean {', '.join(self.nearest)}?)" if self.nearest else "")


class InvalidWorkflowError(UsageError):
    """A workflow that cannot run; ``violations`` holds every rule that it breaks."""

    default_code = "usage.workflow"

    def __init__(self, name: str, violations: tuple[Violation, ...]) -> None:
        """List all violations below the message."""
        count = "1 rule is" if len(violations) == 1 else f"{len(violations)} rules are"
        super().__init__(f"workflow {name} cannot run: {count} broken")
        self.violations = violations
        self.items = tuple(map(str, violations))

    def __str__(self) -> str:
        """The message, and a line for each violation."""
        return "\n  ".join((self.message, *self.items))


def near(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that are nearest to one, best first."""
    known = [str(each) for each in names]
    close = difflib.get_close_matches(str(name), known, 3, 0.5)
    return tuple(close or [each for each in known if each.lower() == str(name).lower()])


def listed(names: Iterable[str]) -> str:
    """Names with commas between them."""
    return ", ".join(map(str, names))


def arrow(edge: DataEdge) -> str:
    """An edge with its relations."""
    names = f" ({listed(edge.relations)})" if edge.relations else ""
    return f"{edge.source} → {edge.target}{names}"
