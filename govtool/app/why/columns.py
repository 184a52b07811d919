"""The annotations of ``why`` by name: for each the keys of its JSON form with a value a row, None for none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from govtool.errors import UsageError

if TYPE_CHECKING:
    from govtool.app.why.query import OpenedQuery
    from govtool.workflow.annotate.tables import Executor
    from govtool.workflow.why import QueryProvenance, ResultRow


@dataclass(frozen=True, slots=True)
class Request:
    """The input of annotations.

    Attributes:
        found: The query's provenance.
        rows: Its rows.
        values: Values of tokens by semiring.
        exact: Refuse what can only be sampled.
        opened: The query, to be evaluated again.
        executor: The engine that evaluated it.
        notes: Where is put what was sampled.
        most: Parts of a sum that are written out; None: all.
    """

    found: QueryProvenance
    rows: list[ResultRow]
    values: Mapping[str, Mapping[str, float]]
    exact: bool
    opened: OpenedQuery
    executor: Executor
    notes: list[str]
    most: int | None

    def only(self, positive: bool, compute: Callable[[list[ResultRow]], list[Any]], guards: bool = False) -> list[Any]:
        """Values of the rows that a semiring fits: those that are there; positive ones if it needs that."""
        chosen = [
            at for at, row in enumerate(self.rows)
            if row.multiplicity and (not positive or self.found.is_positive(row, guards=guards))
        ]  # fmt: skip
        made = compute([self.rows[at] for at in chosen])
        found: list[Any] = [None] * len(self.rows)
        for at, value in zip(chosen, made, strict=True):
            found[at] = value
        return found


Columns = list[tuple[str, list[Any]]]


def _polynomial(request: Request) -> Columns:
    found = request.found
    if request.most is None:
        columns: Columns = [("polynomial", list(found.whole_polynomials(request.rows)))]
        aggregates: list[Any] = list(found.whole_aggregates(request.rows)) if found.cells else []
    else:
        columns = [("polynomial", found.polynomials(request.rows, most=request.most))]
        aggregates = list(found.aggregates(request.rows, most=request.most)) if found.cells else []
    return [*columns, ("aggregates", aggregates)] if found.cells else columns


def _how(request: Request) -> Columns:
    if request.most is None:
        return [("how", list(request.found.whole_polynomials(request.rows, erase_delta=True)))]
    return [("how", request.found.polynomials(request.rows, erase_delta=True, most=request.most))]


def _count(request: Request) -> Columns:
    return [("count", [row.multiplicity for row in request.rows])]


def _bool(request: Request) -> Columns:
    return [("bool", [row.multiplicity > 0 for row in request.rows])]


def _which(request: Request) -> Columns:
    request.found.check_positive("which", guards=True)
    return [("which", request.only(True, request.found.which, guards=True))]


def _why(request: Request) -> Columns:
    request.found.check_positive("why")
    return [("why", request.only(True, request.found.why))]


def _why_minimal(request: Request) -> Columns:
    request.found.check_positive("why-minimal")
    return [("why_minimal", request.only(True, lambda rows: request.found.why(rows, is_minimal=True)))]


def _where(request: Request) -> Columns:
    """Where each cell was copied from; rows are found again by their values."""
    from govtool.workflow.where import cell_origins

    columns: Columns = []
    for key, by_equality in (("where", False), ("where_eq", True)):
        opened = request.opened
        found = cell_origins(
            opened.plan, request.executor, opened.folder.sizes, request.found.tokens, by_equality=by_equality
        )

        def compute(rows: list[ResultRow], found: Any = found) -> list[Any]:
            return [found.of(row.values) for row in rows]

        columns.append((key, request.only(False, compute)))
    return columns


def _cost(request: Request) -> Columns:
    request.found.check_positive("cost")
    values = token_values(request, "cost")
    return [("cost", _numbers(request.only(True, lambda rows: request.found.cost(rows, values))))]


def _trust(request: Request) -> Columns:
    request.found.check_positive("trust")
    values = token_values(request, "trust")
    return [("trust", _numbers(request.only(True, lambda rows: request.found.trust(rows, values))))]


def _numbers(values: list[Any]) -> list[Any]:
    """Whole numbers without a fraction; infinity is no number of JSON: such a row needs no token."""
    return [None if v is None or abs(v) == float("inf") else int(v) if v == int(v) else v for v in values]


def token_values(request: Request, name: str) -> Any:
    """The values of a semiring by node.

    Raises:
        UsageError: A token of a row has none.
    """
    import numpy as np

    from govtool.workflow.semirings.ancestors import ancestors

    found, given = request.found, request.values[name]
    made = np.full(found.query.circuit.size, np.nan)
    nodes = found.tokens.nodes(list(given))
    for token, node in nodes.items():
        made[node] = given[token]
    needed = ancestors(found.query.circuit, found.annotations)
    sources = needed[found.is_source(needed)]
    missing = sources[np.isnan(made[sources])]
    if len(missing):
        names = found.tokens.names(missing[:3])
        raise UsageError(
            f"{len(missing):,} tokens have no {name}: {', '.join(names)}{' …' if len(missing) > 3 else ''}",
            code="usage.values",
        )
    return made


def _prob(request: Request) -> Columns:
    from govtool.workflow.semirings.shares import probability

    chances = token_values(request, "prob")
    worst = 0.0

    def compute(rows: list[ResultRow]) -> list[Any]:
        nonlocal worst
        found = [
            probability(request.found.query.circuit, request.found.nodes(row), chances, exact=request.exact)
            for row in rows
        ]
        worst = max([each.error for each in found], default=0.0)
        return [each.value for each in found]

    made = [("prob", compute(request.rows))]
    if worst:
        request.notes.append(f"prob is sampled where a row has more than 20 tokens: ±{worst:.2g} (99%)")
    return made


def _shares(name: str) -> Callable[[Request], Columns]:
    def columns(request: Request) -> Columns:
        from govtool.workflow.semirings.shares import shares

        worst = 0.0

        def compute(rows: list[ResultRow]) -> list[Any]:
            nonlocal worst
            made = []
            for row in rows:
                nodes = request.found.nodes(row)
                found = shares(request.found.query.circuit, nodes, [name], exact=request.exact)[name]
                worst = max(worst, found.error)
                made.append(_by_token(request, found.value))
            return made

        made = [(name, request.only(False, compute))]
        if worst:
            bound = "a lower bound" if name == "responsibility" else f"±{worst:.2g} (99%)"
            request.notes.append(f"{name} is sampled where a row has more than 20 tokens: {bound}")
        return made

    return columns


def _by_token(request: Request, values: Any) -> dict[str, float]:
    import numpy as np

    names = request.found.tokens.names(np.array(list(values), np.int64))
    return dict(zip(names, values.values(), strict=True))


ANNOTATIONS: dict[str, Callable[[Request], Columns]] = {
    "polynomial": _polynomial, "how": _how, "why": _why, "why-minimal": _why_minimal, "which": _which,
    "where": _where, "count": _count, "bool": _bool, "cost": _cost, "trust": _trust,
    "prob": _prob, "shapley": _shares("shapley"), "banzhaf": _shares("banzhaf"),
    "responsibility": _shares("responsibility"),
}  # fmt: skip
