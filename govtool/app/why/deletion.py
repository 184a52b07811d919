"""``whatif delete --sql``: the effects of deleted records on the rows of a query, without a store."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from govtool.app.records.token_lists import require_tokens
from govtool.app.why.query import OpenedQuery, evaluated, opened_query, provenance
from govtool.errors import UnknownNameError

if TYPE_CHECKING:
    from govtool.answers.whatif_rows import WhatIfRowsAnswer
    from govtool.workflow.annotate.tables import Executor
    from govtool.workflow.queries.statuses import RowDeletion
    from govtool.workflow.why import QueryProvenance

MODES = ("auto", "propagate", "replay")


def delete_rows(
    sql: str,
    data: str,
    deletions: Sequence[Sequence[str]],
    *,
    mode: str = "auto",
    keys: Mapping[str, str] | None = None,
    dialect: str = "spark",
) -> list[WhatIfRowsAnswer]:
    """Answer several deletions for the rows of a query, which is annotated once.

    Args:
        sql: One SELECT.
        data: A folder of relations.
        deletions: Lists of tokens.
        mode: ``propagate`` over the annotations; ``replay``: evaluate the query again; ``auto``: propagate, and replay
            only where something is left unknown.
        keys: For relations, the column that is their token.
        dialect: What the text is written in.

    Raises:
        UsageError: See ``opened_query``; a token twice, or no token.
        UnknownNameError: A token that no relation has.
        EngineError: No engine evaluates the query exactly.
    """
    from dataclasses import replace

    if mode not in MODES:
        raise UnknownNameError.of_few("mode", mode, MODES)
    with opened_query(sql, data, keys or {}, dialect) as opened:
        for tokens in deletions:
            _checked(opened, tokens)

        def work(executor: Executor) -> list[WhatIfRowsAnswer]:
            found = provenance(opened, executor)
            return [_answer(opened, found, tokens, mode) for tokens in deletions]

        answers, engine = evaluated(work)
    return [replace(answer, engine=engine) for answer in answers]


def _answer(opened: OpenedQuery, found: QueryProvenance, tokens: Sequence[str], mode: str) -> WhatIfRowsAnswer:
    import numpy as np

    from govtool.answers.whatif_rows import WhatIfRowsAnswer

    nodes = np.array(sorted(found.tokens.nodes(tokens).values()), np.int64)
    columns = tuple(column.name for column in found.query.columns)
    return WhatIfRowsAnswer(mode, tuple(tokens), columns, _ordered(_deletion(opened, found, nodes, mode)))


def _ordered(result: RowDeletion) -> RowDeletion:
    """The same answer, rows by their values before, gains by their own."""
    from dataclasses import replace

    from govtool.workflow.row_order import row_key

    rows = sorted(result.rows, key=lambda row: (row_key(row.before), row.status, row_key(row.after or ())))
    return replace(result, rows=tuple(rows), gains=tuple(sorted(result.gains, key=row_key)))


def _deletion(opened: OpenedQuery, found: QueryProvenance, nodes: Any, mode: str) -> RowDeletion:
    from govtool.workflow.queries.rerun import ReplayDiffers, replayed, rerun, resolved
    from govtool.workflow.queries.statuses import propagated

    computed = [at for at, column in enumerate(found.query.columns) if column.id in found.cells]
    if mode == "replay":
        before = found.standing_rows()
        return replayed(before, rerun(found.query, opened.plan, nodes, opened.folder.sizes), computed)
    propagation = propagated(found, nodes)
    if mode == "propagate" or propagation.is_certain:
        return propagation
    after = rerun(found.query, opened.plan, nodes, opened.folder.sizes)
    try:
        return resolved(propagation, after, computed)
    except ReplayDiffers:
        return replayed(found.standing_rows(), after, computed)


# ---- tokens ---------------------------------------------------------------------------------------------------------


def _checked(opened: OpenedQuery, tokens: Sequence[str]) -> None:
    """Refuse tokens that name nothing, or one record twice."""
    require_tokens(tokens)
    missing = _missing(opened, tokens)
    if missing:
        raise UnknownNameError(
            f"no relation has a record '{missing[0]}'" + (f", nor {len(missing) - 1:,} more" if missing[1:] else ""),
            code="usage.unknown-token",
            nearest=_near(opened, missing[0]),
            hint=_where_else(opened),
        )


def _where_else(opened: OpenedQuery) -> str:
    if opened.folder.unread:
        return f"not read, as they are no relations: {', '.join(map(str, opened.folder.unread))}"
    return "a token that was deleted from the data before is not there either"


def _missing(opened: OpenedQuery, tokens: Sequence[str]) -> list[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(tokens, pa.string())
    known = pa.array([False] * len(tokens))
    for texts in opened.folder.tokens.values():
        known = pc.or_(known, pc.is_in(wanted, value_set=texts.cast(pa.string())))
    missing: list[str] = wanted.filter(pc.invert(known)).to_pylist()
    return missing


def _near(opened: OpenedQuery, token: str) -> tuple[str, ...]:
    """Tokens that look like one; of large relations only the first are looked at."""
    names = [text for texts in opened.folder.tokens.values() for text in texts[:20_000].to_pylist()]
    return tuple(difflib.get_close_matches(token, names, 3, 0.5))
