"""Variables of sessions and scripts: what SET VAR gave them, for the statements after it.

An analyzed plan names a variable and has its value as a literal at most. Where the value is of a query, what depends on
the variable depends on that query, as in SQL text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.expressions import variable_name
from govtool.capture.spark.analyzed.read import Analyzed
from govtool.capture.spark.analyzed.tree import trees
from govtool.capture.spark.live.spool import Line

MAX_SETTINGS = 20
"""How often a variable may be set in terms of itself until no more than that is known."""


@dataclass(slots=True)
class SessionVariables:
    """The variables of the sessions of a process, as of the execution that is read."""

    _values: dict[str, dict[str, p.Expression]] = field(default_factory=dict)
    _settings: dict[tuple[str, str], int] = field(default_factory=dict)

    def before(self, line: Line) -> Mapping[str, p.Expression]:
        """The values of variables when an execution ran, by name; one that is not here depends on nothing."""
        return self._values.get(str(line.get("session")), {})

    def take(self, line: Line, plan: Analyzed) -> None:
        """Note what an execution did to variables."""
        if line.get("ok") is False:
            return
        session = str(line.get("session"))
        values = self._values.setdefault(session, {})
        for name in line.get("variables") or ():  # declared anew, or dropped
            values.pop(str(name).lower(), None)
        if plan.tree.name != "SetVariable":
            return
        for name, value in list(_assigned(plan)):
            key = session, name
            itself = values.get(name)
            self._settings[key] = self._settings.get(key, 0) + 1 if itself is not None else 0
            if itself is not None and self._settings[key] > MAX_SETTINGS:
                value = p.Opaque("variable", (itself,)) if not isinstance(itself, p.Opaque) else itself
            values.pop(name, None)
            if value is not None:
                values[name] = value


def _assigned(plan: Analyzed) -> Iterator[tuple[str, p.Expression | None]]:
    """Names with what they are set to, by position; None for what is made of no data."""
    outputs = p.outputs_of(plan.root)
    reads = _reads(plan.root)
    for target, output in zip(trees(plan.tree.fields.get("targetVariables")), outputs, strict=False):
        one = p.Project(plan.root, (p.Output(output.id, output.name, p.Attribute(output.id, output.name)),))
        yield variable_name(target), p.Query(one) if reads else None


def _reads(root: p.Node) -> bool:
    """Return whether a plan reads any dataset, in its expressions, too."""
    from govtool.capture.spark.flow import flow_of

    flow = flow_of(root)
    return bool(flow.reads or flow.breaks or any(column.dependencies for column in flow.columns))
