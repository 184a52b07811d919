"""Statements by which the rows of one table are those of another: synonyms, and partitions that are attached.

The trees are COMMANDs with arguments of our own; ``definitions`` and ``walk/unread`` read them:

* ``synonym`` and ``table``: another name, and the table that it stands for; ``public``, whether it has no schema
* ``parent`` and ``table``: a table, and another whose rows are its own, too
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.scripts.unread import table_at
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import find_word, name_end, word


def synonym(reader: StatementReader, tokens: list[Token], at: int) -> None:
    """Read ``CREATE [PUBLIC] SYNONYM name FOR table``; ``at`` is where SYNONYM stands."""
    for_ = find_word(tokens, {"FOR"}, at)
    name = table_at(tokens, at + 1, reader.lex.name)
    table = table_at(tokens, for_ + 1, reader.lex.name) if for_ > 0 else None
    remote = table is not None and name_end(tokens, for_ + 1) < len(tokens)
    if name is None or table is None or remote:
        reader.add(tokens, None, "ignored", head="create synonym")
        return
    public = any(word(token) == "PUBLIC" for token in tokens[1:at])
    tree = exp.Command(this="SYNONYM", synonym=name, table=table, public=public)
    reader.add(tokens, tree, "parsed", head="create synonym")


def attached(reader: StatementReader, tokens: list[Token]) -> bool:
    """Read PostgreSQL's ``ALTER TABLE t ATTACH PARTITION p`` and ``ALTER TABLE kid INHERIT t``; False for others."""
    if word(tokens[0]) != "ALTER" or len(tokens) < 5 or word(tokens[1]) != "TABLE":
        return False
    action = next((i for i, t in enumerate(tokens) if word(t) in ("ATTACH", "INHERIT")), -1)
    if action < 3 or word(tokens[action - 1]) == "NO" or tokens[action - 1].token_type == marks.DOT:
        return False
    attaches = word(tokens[action]) == "ATTACH"
    if attaches and word(tokens[min(action + 1, len(tokens) - 1)]) != "PARTITION":
        return False
    altered = table_at(tokens, 2, reader.lex.name)
    other = table_at(tokens, action + 1 + attaches, reader.lex.name)
    if altered is None or other is None:
        return False
    parent, table = (altered, other) if attaches else (other, altered)
    tree = exp.Command(this="LINK", parent=parent, table=table, partition=attaches)
    reader.add(tokens, tree, "parsed", head="alter table")
    return True
