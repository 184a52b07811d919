"""Texts that do not tokenise as a whole, for instance because a quote is not closed: the rest is read all the same."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.scripts.source_positions import printable
from govtool.capture.sql.scripts.statement import ParsedStatement
from govtool.model.diagnostic import Diagnostic
from govtool.redaction import clean_text

_PIECE: Final = re.compile(r";[ \t]*(?=\r?\n|$)")
_BREAK: Final = re.compile("\n")


def read_pieces(reader: StatementReader, text: str, error: TokenError) -> None:
    """Read what of a text tokenises, line group by line group, and report the rest."""
    outer_line, outer_column = reader.first_line, reader.first_column
    pieces: list[tuple[int, str]] = []
    start = 0
    for match in _PIECE.finditer(text):
        pieces.append((start, text[start : match.start()]))
        start = match.end()
    pieces.append((start, text[start:]))
    breaks = [match.start() for match in _BREAK.finditer(text)]

    def place(offset: int) -> tuple[int, int]:
        lines = bisect_left(breaks, offset)
        column = offset - (breaks[lines - 1] if lines else -1)
        return outer_line + lines, column if lines else column + outer_column - 1

    pending: tuple[int, str] | None = None
    attempts = 0
    for offset, piece in pieces:
        if pending is not None and attempts < 200:
            # A semicolon inside a literal: what fails alone may do together with what follows.
            attempts += 1
            joined = text[pending[0] : offset + len(piece)]
            if len(joined) < 100_000 and _tokens_or_none(reader, joined) is not None:
                _read_at(reader, place(pending[0]), joined)
                pending = None
                continue
        if _tokens_or_none(reader, piece) is not None:
            if pending is not None:
                _broken(reader, place, *pending, error)
                pending = None
            _read_at(reader, place(offset), piece)
        elif pending is None:
            pending = (offset, piece)
        elif text.count("\n", pending[0], offset) > 400:
            _broken(reader, place, *pending, error)
            pending = (offset, piece)
    if pending is not None:
        _broken(reader, place, *pending, error)
    reader.text, reader.first_line, reader.first_column = text, outer_line, outer_column


def _tokens_or_none(reader: StatementReader, text: str) -> list[Token] | None:
    try:
        return reader.lex.tokenize(text)
    except (TokenError, RecursionError, MemoryError):
        return None


def _read_at(reader: StatementReader, place: tuple[int, int], piece: str) -> None:
    line, column = reader.first_line, reader.first_column
    tokens = _tokens_or_none(reader, piece)
    reader.first_line, reader.first_column = place
    reader.text = piece
    if tokens:
        reader.read_tokens(tokens, ())
    reader.first_line, reader.first_column = line, column


def _broken(
    reader: StatementReader, place: Callable[[int], tuple[int, int]], offset: int, piece: str, error: TokenError
) -> None:
    stripped = piece.lstrip()
    line, column = place(offset + len(piece) - len(stripped))
    line = reader.line_of(line) if reader.line_of else line
    message = "a quote, a comment or a bracket is not closed"
    cause = error.__cause__
    if cause is not None and str(cause):
        message = printable(clean_text(str(cause)))[:200]
    diagnostic = Diagnostic("parse-error", "error", message, reader.file or None, line, column)
    head = stripped.split(None, 1)[0].lower()[:40] if stripped else ""
    reader.statements.append(
        ParsedStatement(
            None, stripped.rstrip(), line, column, "failed", printable(head), reader.routine, None, (diagnostic,)
        )
    )
