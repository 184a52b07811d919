"""Rows with their provenance as text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from govtool.render.formats.envelope import compact
from govtool.render.formats.streams import streamed_line, streamed_lines
from govtool.render.layout.parentheses import parenthesised
from govtool.render.layout.rows import ROW_FORMATS, answer_csv, laid_out
from govtool.render.layout.table import Table, TableColumn
from govtool.render.layout.text import count

if TYPE_CHECKING:
    from govtool.answers.why import WhyAnswer, WhyTuple

FORMATS = ROW_FORMATS
CAP = 160
"""Characters of an annotation that a terminal shows, at most; a file has all."""
SHARES = ("shapley", "banzhaf", "responsibility")
_BETWEEN_TOKENS = re.compile(r"[ (*⊗]")
"""Where an annotation may be cut: a part of a token would name another record."""


def render(form: str, answer: WhyAnswer, *, is_whole: bool = False) -> Table | Iterable[str]:
    """One of ``FORMATS``.

    Args:
        form: The format.
        answer: The rows.
        is_whole: Show long annotations whole in tables, too.
    """
    if form == "json":
        return streamed_lines(answer.as_made())
    if form == "jsonl":
        return (piece for each in answer.tuples for piece in streamed_line(each.as_made()))
    if form == "csv":
        return answer_csv(answer)
    made = _table(answer, None if is_whole else CAP)
    return laid_out(form, made)


def _table(answer: WhyAnswer, cap: int | None) -> Table:
    keys = list(dict.fromkeys(key for each in answer.tuples for key in each.annotations))
    titles = [*answer.columns, "times", *keys]
    rows = [
        [*_values(each), _times(each), *(_cell(_readable(key, each.annotations.get(key)), cap) for key in keys)]
        for each in answer.tuples
    ]
    there = sum(each.multiplicity > 0 for each in answer.tuples)
    parts = [count(there, "row")]
    if there < len(answer.tuples):
        parts.append(count(len(answer.tuples) - there, "candidate"))
    if answer.gains_possible:
        parts.append("a deletion may bring other rows, too")
    parts.append(answer.engine)
    columns = tuple(TableColumn(title, "right" if title == "times" else "left") for title in titles)
    summary = "\n".join([" · ".join(parts), *answer.notes])
    styles = ["" if each.multiplicity else "dim" for each in answer.tuples]
    return Table(columns=columns, rows=rows, summary=summary, row_styles=styles)


def _values(each: WhyTuple) -> list[str]:
    return ["NULL" if value is None else _text(value) for value in each.to_dict()["values"]]  # type: ignore[attr-defined]


def _times(each: WhyTuple) -> str:
    return str(each.multiplicity) if each.multiplicity else "candidate"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else compact(value)


def _readable(key: str, value: Any) -> Any:
    """An annotation for people: sums within differences stand in parentheses, the largest shares come first."""
    if key in SHARES and isinstance(value, dict):
        largest = sorted(value.items(), key=lambda each: -each[1])
        return {token: f"{share:.4g}" for token, share in largest}
    if key == "aggregates" and isinstance(value, dict):
        return {name: parenthesised(text) for name, text in value.items()}
    return parenthesised(value) if key in ("polynomial", "how") and isinstance(value, str) else value


def _cell(value: Any, cap: int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        text = ", ".join(value)
    elif isinstance(value, dict):
        text = ", ".join(f"{key}: {_text(each)}" for key, each in value.items())
    else:
        text = _text(value)
    if cap is None or len(text) <= cap:
        return text
    ends = [match.end() for match in _BETWEEN_TOKENS.finditer(text, 0, cap)]
    return f"{text[: ends[-1] if ends else cap].rstrip()} … ({len(text):,} characters)"
