"""Queries over files with the provenance of their rows, without a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.api.arguments import checked

if TYPE_CHECKING:
    from govtool.answers.whatif_rows import WhatIfRowsAnswer
    from govtool.answers.why import WhyAnswer
    from govtool.api.arguments import Texts
    from govtool.app.project.requests import PathArgument


@checked
def why(
    sql: str,
    data: PathArgument,
    *,
    semirings: Texts = ("polynomial", "which", "count"),
    key: Mapping[str, str] | Iterable[str] | None = None,
    values: Mapping[str, Mapping[str, float]] | None = None,
    dialect: str = "spark",
    exact: bool = False,
    capped: bool = False,
    follow_links: bool = False,
) -> WhyAnswer:
    """The rows of a query with their provenance.

    >>> govtool.why("select city, count(*) as n from customers group by city", "data/")  # doctest: +SKIP

    Args:
        sql: One SELECT, in Spark SQL's meaning.
        data: A folder: its ``*.csv`` and ``*.parquet`` are the relations.
        semirings: What to give: ``polynomial``, ``how``, ``why``, ``why-minimal``, ``which``, ``where``, ``count``,
            ``bool``, ``cost``, ``trust``, ``prob``, ``shapley``, ``banzhaf``, ``responsibility``.
        key: For relations, the column whose values are its tokens, by name or as ``table=column``; else ``_tok``, or
            ``relation:row``.
        values: For ``cost``, ``trust`` and ``prob`` the value of each token.
        dialect: What the text is written in.
        exact: Refuse what can only be sampled.
        capped: Write out the first 20 parts of long sums only, and how many more there are.
        follow_links: Read what links in the folder lead to outside of it, too.

    Raises:
        UsageError: The query, the folder or a file is wrong; a semiring does not fit.
        EngineError: No engine evaluates the query exactly.
    """
    from govtool.app.project.links import require_inside
    from govtool.app.why.rows import why as evaluate

    require_inside(Path(data), follow_links=follow_links)
    return evaluate(
        sql,
        fspath(data),
        list(semirings),
        keys=_pairs(key),
        values=values,
        dialect=dialect,
        exact=exact,
        capped=capped,
    )


@checked
def whatif_delete(
    sql: str,
    data: PathArgument,
    tokens: Texts,
    *,
    mode: str = "auto",
    key: Mapping[str, str] | Iterable[str] | None = None,
    dialect: str = "spark",
    follow_links: bool = False,
) -> WhatIfRowsAnswer:
    """Show the effects of deleted records on the rows of a query.

    Args:
        sql: One SELECT, in Spark SQL's meaning.
        data: A folder: its ``*.csv`` and ``*.parquet`` are the relations.
        tokens: The records, by the names that ``why`` gives them.
        mode: ``propagate`` over the annotations, ``replay`` the query, or ``auto``: replay only where propagation
            leaves something unknown.
        key: For relations, the column whose values are its tokens.
        dialect: What the text is written in.
        follow_links: Read what links in the folder lead to outside of it, too.

    Raises:
        UsageError: The query, the folder or a file is wrong; a token is named twice.
        UnknownNameError: There is no such token.
        EngineError: No engine evaluates the query exactly.
    """
    from govtool.app.project.links import require_inside
    from govtool.app.why.deletion import delete_rows

    require_inside(Path(data), follow_links=follow_links)
    (answer,) = delete_rows(sql, fspath(data), [list(tokens)], mode=mode, keys=_pairs(key), dialect=dialect)
    return answer


def _pairs(keys: Mapping[str, str] | Iterable[str] | None) -> Mapping[str, str]:
    from govtool.app.why.rows import read_keys

    if isinstance(keys, Mapping):
        return keys
    return read_keys(list(keys or ()))
