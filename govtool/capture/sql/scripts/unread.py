"""What can still be read of a statement that does not parse: which relations it reads, and which it writes.

The words before a name decide: FROM, JOIN and USING before what is read; INTO, UPDATE and CREATE TABLE before what is
written. The tree is a COMMAND with arguments of our own; ``walk/unread`` reads them:

* ``sources``: the tables that are read
* ``target``: the table that is written, if any
* ``creates``: whether the statement makes that table
* ``mentions``: other names: those that are tables may be read
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import name_end, word, word_set
from govtool.redaction import clean_text, without_users

_HEADS: Final = word_set("SELECT WITH INSERT UPDATE DELETE MERGE CREATE REPLACE FROM (")
_READS: Final = word_set("FROM JOIN USING")
_SKIPPED: Final = word_set("LATERAL ONLY TABLE IF NOT EXISTS OR INTO OVERWRITE")
"""Words between the one that names a role and the name."""
_NO_NAMES: Final = word_set(
    """SELECT WITH WHERE ON SET VALUES UNNEST FLATTEN GROUP ORDER LIMIT HAVING UNION AS AND BY CASE WHEN THEN ELSE END
    INNER LEFT RIGHT FULL CROSS OUTER NATURAL JOIN FROM USING"""
)
MAX_COLUMNS: Final = 1000
"""Tokens of a list of columns behind the name of a common table that are looked through."""
MAX_MENTIONS: Final = 500
"""Names of one statement that are looked up as tables."""
_WITH_FROM: Final = word_set("EXTRACT SUBSTRING TRIM OVERLAY POSITION")
"""Functions whose arguments are written with FROM."""
_NAMES: Final = frozenset({marks.VAR, marks.IDENTIFIER})
_WORD: Final = re.compile(r"\w+")


def unread_tree(tokens: Sequence[Token], dialect: str, text: str) -> exp.Expr | None:
    """The relations of a statement that does not parse; None where no word shows any.

    Args:
        tokens: Those of the statement.
        dialect: Of the statement.
        text: The text that the tokens are of.
    """
    if not tokens or word(tokens[0]) not in _HEADS:
        return None
    target, creates = _target(tokens)
    named = _common_tables(tokens)
    found: dict[str, exp.Table] = {}
    for source in _sources(tokens, dialect):
        if source.args.get("db") or source.name.lower() not in named:
            found.setdefault(source.sql(), source)
    table = _table(tokens, target, dialect)[0] if target else None
    if word(tokens[0]) == "DELETE" and found:  # DELETE FROM t: what it writes
        found.pop(next(iter(found)))
    if table is None and (not found or word(tokens[0]) not in ("SELECT", "WITH", "FROM", "(")):
        return None
    sources = list(found.values())
    others = mentioned(tokens, dialect, text)
    return exp.Command(this=word(tokens[0]), sources=sources, target=table, creates=creates, mentions=others)


def mentioned(tokens: Sequence[Token], dialect: str, text: str) -> list[exp.Table]:
    """The names in tokens that are not understood, as tables: ``a.b``, and ``a``, as ``b`` may be its column.

    Names are looked up, and what was looked up is kept; so words that may be secrets are none.
    """
    found: dict[str, exp.Table] = {}
    shown = text[tokens[0].start : tokens[-1].end + 1]
    cleaned = clean_text(without_users(shown))
    plain = None if cleaned == shown else frozenset(_WORD.findall(cleaned))
    index = 0
    while index < len(tokens) and len(found) < MAX_MENTIONS:
        end = name_end(tokens, index)
        is_name = tokens[index].token_type in _NAMES and word(tokens[index]) not in _NO_NAMES
        if is_name and (plain is None or plain.issuperset(_WORD.findall(tokens[index].text))):
            for stop in (end, end - 2):
                table = _table(tokens[index:stop], 0, dialect)[0] if stop > index else None
                if table is not None:
                    found.setdefault(table.sql(), table)
        index = end
    return list(found.values())


def table_at(tokens: Sequence[Token], index: int, dialect: str, *, call: bool = False) -> exp.Table | None:
    """The table that is named at a place, or with ``call`` the routine; None if it is none."""
    end = index
    while end < len(tokens) and tokens[end].token_type != marks.L_PAREN:
        end += 1
    return _table(tokens[:end] if call else tokens, _name_at(tokens, index), dialect)[0]


def _target(tokens: Sequence[Token]) -> tuple[int, bool]:
    """Where the name of the relation stands that is written, 0 if none does, and whether it is made there."""
    head = word(tokens[0])
    if head in ("CREATE", "REPLACE"):
        for index, token in enumerate(tokens[1:10], 1):
            if word(token) in ("TABLE", "VIEW"):
                return _name_at(tokens, index + 1), True
        return 0, False
    if head == "UPDATE":
        return _name_at(tokens, 1), False
    for index, token in enumerate(tokens):
        if word(token) in ("INTO", "OVERWRITE"):
            return _name_at(tokens, index + 1), head in ("SELECT", "WITH")
    return (_name_at(tokens, 1) if head in ("INSERT", "MERGE") else 0), False


def _name_at(tokens: Sequence[Token], index: int) -> int:
    """The first token behind words that only stand before a name."""
    while index < len(tokens) and word(tokens[index]) in _SKIPPED:
        index += 1
    return index if index < len(tokens) else 0


def _common_tables(tokens: Sequence[Token]) -> frozenset[str]:
    """The names that a WITH gives queries: ``name AS (`` and ``name (a, b) AS (``."""
    found: set[str] = set()
    for index in range(1, len(tokens) - 1):
        if word(tokens[index]) != "AS" or tokens[index + 1].token_type != marks.L_PAREN:
            continue
        at = index - 1
        if tokens[at].token_type == marks.R_PAREN:
            while at > max(0, index - MAX_COLUMNS) and tokens[at].token_type != marks.L_PAREN:
                at -= 1
            at -= 1
        found.add(tokens[max(at, 0)].text.lower())
    return frozenset(found)


def _sources(tokens: Sequence[Token], dialect: str) -> Iterator[exp.Table]:
    """The relations behind FROM, JOIN and USING, and behind the commas of their lists."""
    arguments: list[bool] = []
    for index, token in enumerate(tokens):
        if token.token_type == marks.L_PAREN:
            arguments.append(index > 0 and word(tokens[index - 1]) in _WITH_FROM)
        elif token.token_type == marks.R_PAREN and arguments:
            arguments.pop()
        elif word(token) in _READS and not (arguments and arguments[-1]) and word(tokens[index - 1]) != "DISTINCT":
            yield from _listed(tokens, _name_at(tokens, index + 1), dialect)


def _listed(tokens: Sequence[Token], index: int, dialect: str) -> Iterator[exp.Table]:
    """The relations of a list: ``a, b AS x, c y``."""
    while 0 < index < len(tokens):
        table, index = _table(tokens, index, dialect)
        if table is None:
            return
        yield table
        if index < len(tokens) and word(tokens[index]) == "AS":
            index += 1
        if index < len(tokens) and tokens[index].token_type in _NAMES and word(tokens[index]) not in _NO_NAMES:
            index += 1
        if index >= len(tokens) or tokens[index].token_type != marks.COMMA:
            return
        index += 1


def _table(tokens: Sequence[Token], index: int, dialect: str) -> tuple[exp.Table | None, int]:
    """The table that is named at a place, None if it is a subquery or function, and what follows it."""
    parts: list[exp.Identifier] = []
    while index < len(tokens):
        token = tokens[index]
        if word(token) in _NO_NAMES or not (token.text[:1].isalpha() or token.text[:1] in "_#" or _quoted(token)):
            return None, index
        parts.append(exp.Identifier(this=token.text, quoted=_quoted(token)))
        index += 1
        if index < len(tokens) and tokens[index].token_type == marks.DOT:
            index += 1
            continue
        break
    is_call = index < len(tokens) and tokens[index].token_type == marks.L_PAREN and len(parts) > 0
    if not parts or len(parts) > 3 or (is_call and not _is_column_list(tokens, index)):
        return None, index
    # `project.dataset.table` in one pair of backticks is three names.
    if dialect == "bigquery" and len(parts) == 1 and "." in parts[0].name:
        parts = [exp.Identifier(this=part, quoted=True) for part in parts[0].name.split(".")[-3:]]
    names = dict(zip(("this", "db", "catalog"), reversed(parts), strict=False))
    return exp.Table(**names), index


def _quoted(token: Token) -> bool:
    return token.token_type == marks.IDENTIFIER


def _is_column_list(tokens: Sequence[Token], index: int) -> bool:
    """Return whether parentheses behind a name hold names or definitions of columns: ``INSERT INTO t (a, b)``."""
    before = [word(token) for token in tokens[max(0, index - 8) : index]]
    return any(one in ("INTO", "OVERWRITE", "TABLE", "VIEW", "INSERT") for one in before)
