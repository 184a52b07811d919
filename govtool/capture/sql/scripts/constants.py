"""INSERTs of constants: data, not lineage. Dumps hold millions of them.

Of such a statement there matter its target, its columns and how many values a row has. So only its first row is parsed,
and a run of equal statements is one statement that was seen so many times.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlglot.tokenizer_core import Token

from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import STRING_TYPES

_VALUES = STRING_TYPES | {
    marks.NUMBER,
    marks.NULL,
    marks.TRUE,
    marks.FALSE,
    marks.DEFAULT,
    marks.HEX_STRING,
    marks.BIT_STRING,
    marks.BYTE_STRING,
    marks.DASH,
    marks.PLUS,
}
_QUERIES = frozenset({marks.SELECT, marks.WITH, marks.FROM, marks.TABLE})


class ConstantInsert(NamedTuple):
    """An INSERT of nothing but constants."""

    constant_values: tuple[object, ...]
    """Equal for statements that mean the same."""
    first_row: int
    """The number of its tokens up to the end of the first row."""


def constant_insert(tokens: list[Token]) -> ConstantInsert | None:
    """Read ``INSERT INTO t (…) VALUES (1, 'a'), …`` from its tokens; None for anything else."""
    size = len(tokens)
    values = 1
    while values < size:
        kind = tokens[values].token_type
        if kind == marks.VALUES:
            break
        # INSERT INTO TABLE t: there the word begins no query.
        if kind in _QUERIES and tokens[values - 1].token_type != marks.INTO:
            return None
        values += 1
    start = values + 1
    if start >= size or tokens[start].token_type != marks.L_PAREN or tokens[-1].token_type != marks.R_PAREN:
        return None
    row_ends = depth = width = 0
    for index in range(start, size):
        kind = tokens[index].token_type
        if kind == marks.COMMA:
            width += not row_ends and depth == 1
        elif kind == marks.L_PAREN:
            depth += 1
        elif kind == marks.R_PAREN:
            depth -= 1
            if not depth and not row_ends:
                row_ends = index + 1
        elif kind not in _VALUES or not depth:
            return None
    if depth or not row_ends:
        return None
    head = tuple([(token.text, token.token_type) for token in tokens[:values]])
    return ConstantInsert((*head, width), row_ends)
