"""Dependencies of an output column as packed integers, and the tables that give them meaning.

A dependency says: *this base column, through these functions, in this kind, in this arm*. A statement has thousands of
them and composes them at every CTE and subquery, so they are integers and sets of them are cheap:

    bits 0-3    kind (``EdgeKind``; value flow and steering only)
    bit  4      star: reached through ``*`` only
    bit  5      listed: reached by its position behind a list of names, ``t(a, b)``; a step that names it leaves this
    bits 6-21   arm: 0 for what every alternative needs, else ``group << 12 | number`` (see ``arm_of``)
    bits 22-41  chain: functions applied on the way, an index into ``Interner.chains``
    bits 42-    ref: an index into ``Interner.refs``
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from govtool.model import ColumnRef, EdgeKind

KIND_MASK: Final = 0xF
STAR: Final = 1 << 4
LISTED: Final = 1 << 5
ARM_SHIFT: Final = 6
ARM_MASK: Final = 0xFFFF << ARM_SHIFT
CHAIN_SHIFT: Final = 22
CHAIN_LIMIT: Final = 1 << 20
CHAIN_MASK: Final = (CHAIN_LIMIT - 1) << CHAIN_SHIFT
REF_SHIFT: Final = 42

ARMS_PER_GROUP: Final = 1 << 12
GROUPS: Final = 1 << 4

IDENTITY: Final = int(EdgeKind.IDENTITY)
TRANSFORMATION: Final = int(EdgeKind.TRANSFORMATION)
AGGREGATION: Final = int(EdgeKind.AGGREGATION)
CONDITIONAL: Final = int(EdgeKind.CONDITIONAL)
WINDOW: Final = int(EdgeKind.WINDOW)

OPAQUE: Final = int(EdgeKind.OPAQUE)

JOIN: Final = int(EdgeKind.JOIN)
FILTER: Final = int(EdgeKind.FILTER)
GROUP_BY: Final = int(EdgeKind.GROUP_BY)
SORT: Final = int(EdgeKind.SORT)
DISTINCT: Final = int(EdgeKind.DISTINCT)
SET_OPERATION: Final = int(EdgeKind.SET_OPERATION)
UNION_ALL: Final = int(EdgeKind.UNION_ALL)
"""The kinds of the row set: in which clause a column decides about rows."""

_NEVER: Final = (OPAQUE,) * (OPAQUE - WINDOW)
COMPOSED: Final = (
    # inner:  identity         transformation  aggregation  conditional  window; opaque stays opaque         outer:
    (IDENTITY, TRANSFORMATION, AGGREGATION, CONDITIONAL, WINDOW, *_NEVER),  # identity
    (TRANSFORMATION, TRANSFORMATION, AGGREGATION, CONDITIONAL, WINDOW, *_NEVER),  # transformation
    (AGGREGATION, AGGREGATION, AGGREGATION, CONDITIONAL, WINDOW, *_NEVER),  # aggregation
    (CONDITIONAL, CONDITIONAL, CONDITIONAL, CONDITIONAL, CONDITIONAL, *_NEVER),  # conditional
    (WINDOW, WINDOW, WINDOW, WINDOW, WINDOW, *_NEVER),  # window
)
"""``COMPOSED[outer][inner]``: what steers once never becomes a value again; an aggregation stays one."""

Deps = tuple[int, ...]
"""The dependencies of one output column, distinct, in order of discovery."""


def arm_of(group: int, number: int) -> int:
    """Return the arm bits of alternative ``number`` (0-based) of set operation or MERGE ``group`` of a statement.

    Alternatives of one group are any-of; groups, and arm 0, are all-of. Beyond the limits arms fold into arm 0, which
    is the cautious reading: needed by all.
    """
    if group >= GROUPS or number >= ARMS_PER_GROUP - 1:
        return 0
    return (group * ARMS_PER_GROUP + number + 1) << ARM_SHIFT


_new: Final[Callable[..., ColumnRef]] = tuple.__new__  # a third of the time of the constructor


class Interner:
    """Tables of column references and function chains, shared by all statements of one extraction.

    Attributes:
        depth: How many queries are being walked, one for the sake of the other.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.deepest = 0
        """The greatest depth that there was; whoever wants to know sets it back."""
        self.refs: list[ColumnRef] = []
        self.chains: list[tuple[str, ...]] = [()]
        self._ref_ids: dict[tuple[str, str], int] = {}
        self._chain_ids: dict[tuple[str, ...], int] = {(): 0}
        self._prepended: dict[tuple[str, int], int] = {}
        self._joined: dict[tuple[int, int], int] = {}

    def ref(self, dataset: str, path: str) -> int:
        """Return the dependency (identity, no functions) on a column of a base dataset."""
        key = (dataset, path)
        number = self._ref_ids.get(key)
        if number is None:
            number = self._ref_ids[key] = len(self.refs)
            self.refs.append(_new(ColumnRef, key))
        return number << REF_SHIFT

    def field(self, dep: int, path: str) -> int:
        """Return the dependency on a field below the column of ``dep``; itself, transformed, where it is not a
        plain copy.
        """
        if dep & (KIND_MASK | CHAIN_MASK):
            return compose(dep, TRANSFORMATION, 0, self)
        ref = self.refs[dep >> REF_SHIFT]
        joined = ref.path + path if path.startswith("[") else f"{ref.path}.{path}"
        return self.ref(ref.dataset, joined) | (dep & (ARM_MASK | LISTED))

    def prepend(self, function: str, chain: int) -> int:
        """Return the chain that applies ``function`` first and then ``chain``."""
        key = (function, chain)
        found = self._prepended.get(key)
        if found is None:
            found = self._prepended[key] = self._chain((function, *self.chains[chain]))
        return found

    def join(self, inner: int, outer: int) -> int:
        """Return the chain that applies ``inner`` first and then ``outer``."""
        if not inner or not outer:
            return inner or outer
        key = (inner, outer)
        found = self._joined.get(key)
        if found is None:
            found = self._joined[key] = self._chain(self.chains[inner] + self.chains[outer])
        return found

    def _chain(self, functions: tuple[str, ...]) -> int:
        functions = _shortened(functions)
        number = self._chain_ids.get(functions)
        if number is None:
            if len(self.chains) >= CHAIN_LIMIT:
                return 0
            number = self._chain_ids[functions] = len(self.chains)
            self.chains.append(functions)
        return number


MAX_CHAIN: Final = 32


def _shortened(functions: tuple[str, ...]) -> tuple[str, ...]:
    """Drop neighbours that repeat, and cap the length, so that recursion and deep nesting stay finite."""
    kept: list[str] = []
    for name in functions:
        if not kept or kept[-1] != name:
            kept.append(name)
    if len(kept) > MAX_CHAIN:
        kept = [*kept[: MAX_CHAIN // 2], "…", *kept[-MAX_CHAIN // 2 :]]
    return tuple(kept)


def compose(dep: int, kind: int, chain: int, interner: Interner) -> int:
    """Return inner dependency ``dep`` as seen through an outer step of ``kind`` with the functions of ``chain``.

    The step names the column, so the star bit goes.
    """
    inner = dep & KIND_MASK
    dep = (dep & ~(KIND_MASK | STAR)) | COMPOSED[kind][inner]
    if chain and kind < CONDITIONAL and inner < CONDITIONAL:
        joined = interner.join((dep & CHAIN_MASK) >> CHAIN_SHIFT, chain)
        dep = (dep & ~CHAIN_MASK) | (joined << CHAIN_SHIFT)
    return dep


def with_arm(deps: Iterable[int], arm: int) -> Deps:
    """Return ``deps`` as parts of alternative ``arm``; the outermost alternative wins."""
    if not arm:
        return tuple(deps)
    return tuple(dict.fromkeys((dep & ~ARM_MASK) | arm for dep in deps))


def possibly(deps: Iterable[int]) -> Deps:
    """Return dependencies of a column that is only a candidate."""
    return tuple(dict.fromkeys((dep >> REF_SHIFT << REF_SHIFT) | OPAQUE for dep in deps))


MAX_VARIANTS: Final = 256


def bounded(deps: Iterable[int]) -> Deps:
    """Return ``deps`` without repeats; where one column has very many, keep one per column and kind, without functions.

    A chain that is dropped only means that no function is known to lie on the way, so nothing is ever taken as masked
    that is not.
    """
    unique = tuple(dict.fromkeys(deps))
    if len(unique) <= MAX_VARIANTS:
        return unique
    return tuple(dict.fromkeys(dep & ~CHAIN_MASK for dep in unique))


def as_conditions(deps: Iterable[int], interner: Interner) -> Deps:
    """Return dependencies as those of a condition, whatever they were: they steer a value and are no part of it."""
    return tuple([compose(dep & ~KIND_MASK, CONDITIONAL, 0, interner) for dep in deps])
