"""Locations of a data subject's key: the named column, its sources, its copies, and what is joined on it.

A column is a *key* if it holds the subject's identifier as it is, so that the subject's rows can be picked by it:

    copies      along identity edges, downwards from any key
    origins     along identity edges, upwards from the named column and what is joined on it, where there is one source
    partners    ``JOIN … ON u.id = o.user_id``: what a statement compares a key with, read from its text, or, where the
                text does not tell, from its join columns if there are but two

What may be a key, because a column has several sources or a join does not tell, is kept apart with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from govtool.graph.index import Index
from govtool.model.kinds import VALUE_FLOW, EdgeKind
from govtool.names import fold, split_name

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_JOINS = frozenset({EdgeKind.JOIN, EdgeKind.FILTER})
"""Kinds of the columns that a condition compares. Of an old-style join it is a filter, which only its text can tell
from others."""
_UPDATES = _JOINS | {EdgeKind.CONDITIONAL}
"""The same of UPDATE … FROM and MERGE, whose conditions decide which rows get a value."""


@dataclass(slots=True)
class Keys:
    """The keys of a subject in a graph."""

    named: tuple[int, ...]
    exact: dict[int, str] = field(default_factory=dict)
    """Keys, and in a few words how each is known."""
    holders: set[int] = field(default_factory=set)
    """Datasets whose rows are about the subject by a key of their own: named, an origin, or joined on."""
    possible: dict[int, str] = field(default_factory=dict)
    """Datasets that may hold rows about the subject, and why that could not be told."""


def keys_of(index: Index, named: Iterable[int], also: Iterable[int] = ()) -> Keys:
    """Look for a subject's keys.

    Args:
        index: The graph.
        named: The columns that identify the subject.
        also: Further columns that someone says hold the same identifier.
    """
    keys = Keys(tuple(named))
    for node in keys.named:
        _own(index, keys, node, "the subject")
    for node in also:
        _own(index, keys, node, "declared with --key")
    waiting = list(keys.exact)
    while waiting:
        node = waiting.pop()
        known = set(keys.exact)
        if index.node_dataset[node] in keys.holders:
            _upwards(index, keys, node)
        for edge in index.out_edges(node):
            if _copies(index, edge):
                keys.exact.setdefault(index.edge_target[edge], f"copied from {index.name(node)}")
        _partners(index, keys, node)
        waiting += keys.exact.keys() - known
    _beside(index, keys)
    keys.possible = {d: why for d, why in keys.possible.items() if d not in keys.holders}
    return keys


def _own(index: Index, keys: Keys, node: int, why: str) -> None:
    keys.exact.setdefault(node, why)
    keys.holders.add(index.node_dataset[node])


def _copies(index: Index, edge: int) -> bool:
    return index.kind(edge) is EdgeKind.IDENTITY and not index.functions(edge)


def _upwards(index: Index, keys: Keys, node: int) -> None:
    """Return the sources of a key's values."""
    edges = [e for e in index.in_edges(node) if index.kind(e) in VALUE_FLOW or index.kind(e) is EdgeKind.OPAQUE]
    sources = {index.edge_source[e] for e in edges} - {node}
    for edge in edges:
        source = index.edge_source[edge]
        if source == node or source in keys.exact:
            continue
        if len(sources) == 1 and _copies(index, edge) and not index.is_rows(source):
            _own(index, keys, source, f"{index.name(node)} is a copy of it")
        else:
            several = f"one of several sources of {index.name(node)}"
            how = several if len(sources) > 1 else f"{index.name(node)} is made of it, and not copied"
            keys.possible.setdefault(index.node_dataset[source], how)


def _beside(index: Index, keys: Keys) -> None:
    """Note the datasets whose columns a UNION puts beside a key: what is in them may be the same identifier."""
    for node in keys.exact:
        if index.node_dataset[node] in keys.holders:
            continue
        sources = {index.edge_source[edge] for edge in index.in_edges(node) if _copies(index, edge)}
        for source in sources - keys.exact.keys():
            if not index.is_rows(source):
                keys.possible.setdefault(
                    index.node_dataset[source], f"{index.name(source)} is a source of {index.name(node)}, as a key is"
                )


def _partners(index: Index, keys: Keys, node: int) -> None:
    """Return the columns that statements compare a key with."""
    for edge in index.out_edges(node):
        derivation, target = index.edge_derivation[edge], index.edge_target[edge]
        kinds = _UPDATES if index.mode(derivation) == "update" else _JOINS
        if index.kind(edge) not in kinds:
            continue
        others: dict[int, EdgeKind] = {}
        for e in index.in_edges(target):
            if index.edge_derivation[e] == derivation and index.kind(e) in kinds:
                others.setdefault(index.edge_source[e], index.kind(e))
        others.pop(node, None)
        place = f"{index.field(derivation, 'file')}:{index.arrays['derivation_line'][derivation]}"
        found = compared(index, derivation, node, set(others))
        if found is None and index.kind(edge) is EdgeKind.JOIN:
            # The text does not tell which columns are compared; with one other column in the join, it is that one.
            joined = {n for n, kind in others.items() if kind is EdgeKind.JOIN}
            found = joined if len(joined) == 1 else None
            if found is None:
                for dataset in {index.node_dataset[n] for n in joined} - {index.node_dataset[node]}:
                    keys.possible.setdefault(
                        dataset, f"joined with {index.name(node)} in {place}; the run does not say on which columns"
                    )
        for other in found or ():
            if other not in keys.exact:
                _own(index, keys, other, f"joined on {index.name(node)} in {place}")


def compared(index: Index, derivation: int, node: int, others: set[int]) -> set[int] | None:
    """The join columns that a statement says are equal to a column; None if its text does not tell."""
    pairs = _equalities(index.field(derivation, "text") or "", index.field(derivation, "dialect") or "")
    if pairs is None:
        return None
    found: set[int] = set()
    for left, right in pairs:
        ends = [_possible_columns(index, one, {node, *others}) for one in (left, right)]
        if node in ends[0] | ends[1] and any(len(end) != 1 for end in ends):
            return None
        for one, other in (ends, ends[::-1]):
            if one == {node}:
                found |= other - {node}
    return found


_Term = tuple[str, str]
"""The table that a column is of, as the statement has it (or nothing), and the column's name."""


def _possible_columns(index: Index, term: _Term, among: set[int]) -> set[int]:
    """The columns that a term of a comparison may mean."""
    table, name = term
    fit = {n for n in among if split_name(index.path(n))[-1] == name}
    if not table:
        return fit
    dataset = {n: index.dataset_name(index.node_dataset[n]) for n in fit}
    return {n for n, text in dataset.items() if text == table or text.endswith(f".{table}")}


@lru_cache(maxsize=4096)
def _equalities(text: str, dialect: str) -> tuple[tuple[_Term, _Term], ...] | None:
    """Pairs of columns that the joins of a statement say are equal; None where that cannot be read from it.

    A column of a subquery or a CTE is taken by its name alone.
    """
    from sqlglot import exp

    tree = _tree(text, dialect)
    if tree is None:
        return None
    tables: dict[str, set[str]] = {}
    named = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        parts = [fold(p.name, quoted=bool(p.args.get("quoted")), dialect=dialect, table=True) for p in table.parts]
        whole = "" if len(parts) == 1 and parts[0].lower() in named else ".".join(parts)
        tables.setdefault(table.alias_or_name.lower(), set()).add(whole)

    def term(column: exp.Column) -> _Term:
        known = tables.get(column.table.lower(), {""}) if column.table else {""}
        quoted = isinstance(column.this, exp.Identifier) and bool(column.this.quoted)
        return (next(iter(known)) if len(known) == 1 else "", fold(column.name, quoted=quoted, dialect=dialect))

    found = [pair for join in tree.find_all(exp.Join) for pair in _using(join)]
    for equal in tree.find_all(exp.EQ, exp.NullSafeEQ):
        ends = equal.this.unnest(), equal.expression.unnest()
        if all(isinstance(e, exp.Column) for e in ends):
            found.append((term(ends[0]), term(ends[1])))
    return tuple(found)


def _tree(text: str, dialect: str) -> Expr | None:
    """The tree of a statement, as the extractor reads it; None where it is not understood as a whole."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    from govtool.capture.sql.scripts.clauses.table import simplified
    from govtool.capture.sql.syntax.lexer import NestingError, lexer

    refused = (SqlglotError, NestingError, RecursionError, ValueError)
    with suppress(*refused):
        lex = lexer(dialect)
        tokens = lex.tokenize(text)
        for form in (tokens, simplified(tokens, dialect)):
            with suppress(*refused):
                tree = lex.parse(form, text)
                if tree is not None and not isinstance(tree, exp.Command):
                    return tree
    return None


def _using(join: object) -> Iterator[tuple[_Term, _Term]]:
    """Pairs of columns of ``USING``, which does not name its sides: an empty name stands for either."""
    from sqlglot import exp

    if isinstance(join, exp.Join):
        for column in join.args.get("using") or ():
            yield ("", column.name.lower()), ("", column.name.lower())
