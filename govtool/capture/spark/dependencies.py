"""Dependencies of columns on the way through a plan, their steps, and values with their parts.

Composing two steps is the table of the SQL extractor (``govtool/capture/sql/walk/dependencies.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from govtool.model import STEERING, ColumnRef, Diagnostic, EdgeKind

_IDENTITY, _TRANSFORMATION, _OPAQUE = EdgeKind.IDENTITY, EdgeKind.TRANSFORMATION, EdgeKind.OPAQUE

UDFS = ("python-udf", "jvm-udf")
"""Reasons that begin so are of functions whose arguments are certain: only what they do with them is not known."""

MAX_CHAIN = 32
MAX_VARIANTS = 256


class Dependency(NamedTuple):
    """A source of a column, and the kind of the dependency."""

    source: ColumnRef
    kind: EdgeKind = EdgeKind.IDENTITY
    functions: tuple[str, ...] = ()
    """Innermost first."""
    arm: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ColumnDependencies:
    """An output column and what it depends on."""

    name: str
    dependencies: tuple[Dependency, ...]
    is_path: bool = False
    """The name is a canonical path already: of a column, or a field, that UPDATE or MERGE assigns."""


@dataclass(frozen=True, slots=True)
class PlanDependencies:
    """The lineage of a plan's output."""

    columns: tuple[ColumnDependencies, ...] = ()
    """By position."""
    rows: tuple[Dependency, ...] = ()
    """Dependencies of the set of rows: row-set kinds, and `OPAQUE`."""
    reads: tuple[str, ...] = ()
    """Datasets, in order; views of the catalog, not what is behind them."""
    breaks: tuple[Diagnostic, ...] = ()
    """Places where lineage was lost, or an attribute could not be found."""
    views: tuple[tuple[str, PlanDependencies], ...] = ()
    """Views of the catalog that were read, and what they say; each once."""


def compose(inner: Dependency, kind: EdgeKind, functions: tuple[str, ...] = ()) -> Dependency:
    """Return a dependency as seen through an outer step: what steers once never becomes a value again, an aggregation
    stays one, and what is opaque stays opaque, unless a Python function with certain arguments only steers.
    """
    if inner.kind is _OPAQUE:
        if kind in STEERING and is_certain(inner):
            return inner._replace(kind=kind, reason=None)
        return inner
    if kind in STEERING:
        return inner if inner.kind is kind else inner._replace(kind=kind)
    if inner.kind in STEERING or (kind is _IDENTITY and not functions):
        return inner
    return inner._replace(kind=max(inner.kind, kind), functions=_shortened(inner.functions + functions))


def is_certain(dependency: Dependency) -> bool:
    """Return whether what is opaque is so because of a function whose arguments are certain."""
    return (dependency.reason or "").startswith(UDFS)


def _shortened(functions: tuple[str, ...]) -> tuple[str, ...]:
    """Drop neighbours that repeat, and cap the length."""
    kept = tuple(name for i, name in enumerate(functions) if not i or functions[i - 1] != name)
    if len(kept) > MAX_CHAIN:
        kept = (*kept[: MAX_CHAIN // 2], "…", *kept[-MAX_CHAIN // 2 :])
    return kept


def bounded(dependencies: Iterable[Dependency]) -> tuple[Dependency, ...]:
    """Each dependency once; of very many, without the functions on the way."""
    unique = tuple(dict.fromkeys(dependencies))
    if len(unique) <= MAX_VARIANTS:
        return unique
    return tuple(dict.fromkeys(dependency._replace(functions=()) for dependency in unique))


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """The dependencies of a column, and those of its parts where it was built here."""

    deps: tuple[Dependency, ...] = ()
    fields: Mapping[str, ColumnValue] | None = None
    element: ColumnValue | None = None

    def step(self, step: str) -> ColumnValue:
        """Return a part of the value: a field, an element, what is under a key."""
        if step == "[]" and self.element is not None:
            return self.element
        if self.fields is not None and step in self.fields:
            return self.fields[step]
        if self.element is not None and self.element.fields is not None and step in self.element.fields:
            return self.element.fields[step]  # items.price: the prices of all items
        return ColumnValue(tuple(dict.fromkeys(_below(dep, step) for dep in self.deps)))


def _below(dep: Dependency, step: str) -> Dependency:
    if dep.kind is not _IDENTITY or dep.functions:
        return compose(dep, _TRANSFORMATION)
    path = dep.source.path
    return dep._replace(source=ColumnRef(dep.source.dataset, f"{path}{step}" if step[0] == "[" else f"{path}.{step}"))


def mapped(value: ColumnValue, change: Callable[[Dependency], Dependency]) -> ColumnValue:
    """Return a value with every dependency changed, those of its parts too."""
    return ColumnValue(
        tuple(dict.fromkeys(change(dep) for dep in value.deps)),
        None if value.fields is None else {name: mapped(part, change) for name, part in value.fields.items()},
        None if value.element is None else mapped(value.element, change),
    )


def merged(values: Sequence[ColumnValue]) -> ColumnValue:
    """Return what is any of several values; parts are known where all of them know them."""
    if len(values) == 1:
        return values[0]
    fields: Mapping[str, ColumnValue] | None = None
    # A field is known only if each of the alternatives has it.
    if values and all(value.fields is not None for value in values):
        known = [value.fields or {} for value in values]
        shared = [name for name in known[0] if all(name in each for each in known)]
        fields = {name: merged([each[name] for each in known]) for name in shared}
    elements = [value.element for value in values if value.element is not None]
    return ColumnValue(
        bounded(dep for value in values for dep in value.deps),
        fields,
        merged(elements) if elements and len(elements) == len(values) else None,
    )


def marked(dep: Dependency, arm: int) -> Dependency:
    """A dependency as a part of an alternative."""
    return dep._replace(arm=arm) if arm else dep


def in_arm(value: ColumnValue, arm: int) -> ColumnValue:
    """A value as a part of an alternative."""
    return mapped(value, lambda dep: marked(dep, arm)) if arm else value
