"""``why --sql``: a query over a folder of relations, with the provenance of its rows; no store."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.why.columns import ANNOTATIONS, Columns, Request
from govtool.app.why.query import OpenedQuery, evaluated, opened_query, provenance
from govtool.errors import UnknownNameError, UsageError
from govtool.given_files import read_given_text

if TYPE_CHECKING:
    from govtool.answers.why import WhyAnswer
    from govtool.workflow.annotate.tables import Executor
    from govtool.workflow.why import QueryProvenance

SEMIRINGS = tuple(ANNOTATIONS)
DEFAULT = ("polynomial", "which", "count")
MOST = 20
"""Parts of a sum that a capped polynomial has."""
_WHOLE = 2**53
"""Up to it, whole numbers and their sums are exact."""
VALUED = ("cost", "trust", "prob")
"""Semirings that need a value for every token."""


def why(
    sql: str,
    data: str,
    semirings: Sequence[str] = DEFAULT,
    *,
    keys: Mapping[str, str] | None = None,
    values: Mapping[str, Mapping[str, float]] | None = None,
    dialect: str = "spark",
    exact: bool = False,
    capped: bool = False,
) -> WhyAnswer:
    """The rows of a query with their annotations.

    Args:
        sql: One SELECT.
        data: A folder of relations.
        semirings: Of ``SEMIRINGS``.
        keys: For relations, the column that is their token.
        values: For ``cost``, ``trust`` and ``prob`` the value of each token.
        dialect: What the text is written in; it means what Spark SQL means by it.
        exact: Refuse what can only be sampled.
        capped: Write out the first parts of long polynomials only.

    Raises:
        UsageError: See ``opened_query``; a semiring that does not fit, or has no values.
        EngineError: No engine evaluates the query exactly.
    """
    names = checked_semirings(semirings, values or {})
    with opened_query(sql, data, keys or {}, dialect) as opened:

        def work(executor: Executor) -> WhyAnswer:
            found = provenance(opened, executor)
            return _answer(opened, executor, found, names, values or {}, exact, MOST if capped else None)

        answer, engine = evaluated(work)
    from dataclasses import replace

    return replace(answer, engine=engine)


def checked_semirings(semirings: Sequence[str], values: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The names of semirings, each once.

    Raises:
        UnknownNameError: There is no such semiring (``usage.unknown-semiring``).
        UsageError: One needs values, and there are none, or some that are no numbers (``usage.values``).
    """
    names = list(dict.fromkeys(semirings))
    for name in names:
        if name not in SEMIRINGS:
            raise UnknownNameError.of_few("semiring", name, SEMIRINGS)
    for name in VALUED:
        if name in names and name not in values:
            raise UsageError(
                f"{name} needs a value for every token", code="usage.values", hint=f"--values {name}=FILE.json"
            )
    for name, own in values.items():
        for token, value in own.items():
            _check_value(name, token, value)
    return names


def _answer(
    opened: OpenedQuery,
    executor: Executor,
    found: QueryProvenance,
    names: list[str],
    values: Mapping[str, Mapping[str, float]],
    exact: bool,
    most: int | None,
) -> WhyAnswer:
    from govtool.answers.why import WhyAnswer, WhyTuple
    from govtool.arrays.long_text import Annotations

    rows = found.rows
    notes: list[str] = []
    request = Request(found, rows, values, exact, opened, executor, notes, most)
    columns = [column for name in names for column in _annotated(name, request, tuple(names) == DEFAULT)]
    tuples = tuple(
        WhyTuple(
            row.values,
            row.multiplicity,
            Annotations({key: made[at] for key, made in columns if made[at] is not None}),
        )
        for at, row in enumerate(rows)
    )
    titles = tuple(column.name for column in found.query.columns)
    return WhyAnswer(titles, _ordered(_real(tuples)), found.gains_possible, notes=tuple(notes))


def _annotated(name: str, request: Request, is_default: bool) -> Columns:
    """What a semiring gives; of the default ones, a note in the place of ``which`` where it does not fit the query."""
    try:
        return ANNOTATIONS[name](request)
    except UsageError as error:
        if not is_default or error.code != "usage.semiring":
            raise
        request.notes.append(f"{name} is left out: {error.message}")
        return []


def _ordered(tuples: tuple[Any, ...]) -> tuple[Any, ...]:
    """Rows by their values, candidates behind the others."""
    from govtool.workflow.row_order import row_key

    return tuple(sorted(tuples, key=lambda each: (not each.multiplicity, row_key(each.values))))


def _real(tuples: tuple[Any, ...]) -> tuple[Any, ...]:
    """Rows without candidates whose annotation is 0: they can never be there."""
    return tuple(each for each in tuples if each.multiplicity or each.annotations.get("polynomial") != "0")


def read_values(options: Sequence[str]) -> dict[str, dict[str, float]]:
    """Read ``cost=F.json``: an object of numbers by token.

    Raises:
        UsageError: The option or the file is something else (``usage.values``).
    """
    found: dict[str, dict[str, float]] = {}
    for option in options:
        name, equals, file = option.partition("=")
        if not equals or name not in VALUED:
            raise UsageError(
                f"'{option}' is not {', '.join(f'{each}=FILE.json' for each in VALUED[:-1])} or {VALUED[-1]}=FILE.json",
                code="usage.values",
                nearest=tuple(f"{each}={file or 'FILE.json'}" for each in difflib.get_close_matches(name, VALUED)),
            )
        try:
            read = json.loads(read_given_text(Path(file), "utf-8-sig"), object_pairs_hook=_once)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"cannot read values: {reason.lower()}", code="usage.values", location=file) from error
        if not isinstance(read, dict):
            raise UsageError("values are an object of numbers by token", code="usage.values", location=file)
        for token, value in read.items():
            _check_value(name, token, value, file)
        found[name] = read
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON whose keys differ.

    Raises:
        ValueError: One is repeated.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"two values of {next(name for name in names if names.count(name) > 1)}")
    return found


def _check_value(name: str, token: str, value: object, file: str | None = None) -> None:
    """Refuse what is not a number that is computed with as it stands.

    Raises:
        UsageError: It is text, not finite, a whole number of more digits than a float has, or a probability that is
            none (``usage.values``).
    """
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole and not (isinstance(value, float) and isfinite(value)):
        raise UsageError(
            f"the {name} of {token} is no finite number: {str(value)[:40]}",
            code="usage.values",
            location=file,
            hint="values are an object of numbers by token",
        )
    if isinstance(value, Integral) and abs(int(value)) > _WHOLE:
        raise UsageError(
            f"the {name} of {token} has more digits than are computed with", code="usage.values", location=file
        )
    if name == "prob" and isinstance(value, (int, float)) and not 0 <= value <= 1:
        raise UsageError(
            f"the probability of {token} is {value}: it has to be from 0 to 1", code="usage.values", location=file
        )


def read_keys(options: Sequence[str]) -> dict[str, str]:
    """Read ``TABLE=COLUMN``.

    Raises:
        UsageError: An option is something else (``usage.key``).
    """
    found: dict[str, str] = {}
    for option in options:
        table, equals, column = option.partition("=")
        if not equals or not table or not column:
            raise UsageError(f"no key: {option}", code="usage.key", hint="--key TABLE=COLUMN")
        if found.setdefault(table, column) != column:
            raise UsageError(f"two keys of {table}: {found[table]} and {column}", code="usage.key")
    return found
