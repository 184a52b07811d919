"""Queries over files with the provenance of their rows, without a store."""

from __future__ import annotations

from collections.abc import Mapping
from os import fspath
from typing import TYPE_CHECKING

from govtool.api.arguments import checked

if TYPE_CHECKING:
    from govtool.answers.whatif_rows import WhatIfRowsAnswer
    from govtool.answers.why import WhyAnswer
    from govtool.api.arguments import Texts
    from govtool.app.requests import PathArgument


@checked
def why(
    sql: str,
    data: PathArgument,
    *,
    semirings: Texts = ("polynomial", "which", "count"),
    keys: Mapping[str, str] | None = None,
    values: Mapping[str, Mapping[str, float]] | None = None,
    dialect: str = "spark",
    exact: bool = False,
) -> WhyAnswer:
    """The rows of a query with their provenance.

    >>> govtool.why("select city, count(*) as n from customers group by city", "data/")  # doctest: +SKIP

    Args:
        sql: One SELECT, in Spark SQL's meaning.
        data: A folder: its ``*.csv`` and ``*.parquet`` are the relations.
        semirings: What to give: ``polynomial``, ``how``, ``why``, ``why-minimal``, ``which``, ``where``, ``count``,
            ``bool``, ``cost``, ``trust``, ``prob``, ``shapley``, ``banzhaf``, ``responsibility``.
        keys: For relations, the column whose values are its tokens; else ``_tok``, or ``relation:row``.
        values: For ``cost``, ``trust`` and ``prob`` the value of each token.
        dialect: What the text is written in.
        exact: Refuse what can only be sampled.

    Raises:
        UsageError: The query, the folder or a file is wrong; a semiring does not fit.
        EngineError: No engine evaluates the query exactly.
    """
    from govtool.app.why import why as ask

    return ask(sql, fspath(data), list(semirings), keys=keys, values=values, dialect=dialect, exact=exact)


@checked
def whatif_delete(
    sql: str,
    data: PathArgument,
    tokens: Texts,
    *,
    mode: str = "auto",
    keys: Mapping[str, str] | None = None,
    dialect: str = "spark",
) -> WhatIfRowsAnswer:
    """What a deletion of records makes of the rows of a query.

    Args:
        sql: One SELECT, in Spark SQL's meaning.
        data: A folder: its ``*.csv`` and ``*.parquet`` are the relations.
        tokens: The records, by the names that ``why`` gives them.
        mode: ``propagate`` over the annotations, ``replay`` the query, or ``auto``: replay only where propagation
            leaves something unknown.
        keys: For relations, the column whose values are its tokens.
        dialect: What the text is written in.

    Raises:
        UsageError: The query, the folder or a file is wrong; a token is named twice.
        UnknownNameError: There is no such token.
        EngineError: No engine evaluates the query exactly.
    """
    from govtool.app.whatif_rows import delete_rows

    (answer,) = delete_rows(sql, fspath(data), [list(tokens)], mode=mode, keys=keys, dialect=dialect)
    return answer
