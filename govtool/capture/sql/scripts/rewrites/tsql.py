"""Statements of T-SQL that the parser does not know: loads, moved partitions, calls without EXEC, and those of the
server's administration, which carry no lineage.

Source: Transact-SQL reference.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql.scripts import table_types
from govtool.capture.sql.scripts.control import dynamic, variables
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.scripts.rewrites.tools import moved_rows
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import STRING_TYPES, find_word, like, split, word, word_set

_ADMINISTRATION: Final = word_set("RECONFIGURE DISABLE ENABLE SHUTDOWN MOVE REVERT SETUSER CHECKPOINT")
_KEPT_ELSEWHERE: Final = word_set(
    """APPLICATION ASSEMBLY ASYMMETRIC AVAILABILITY BROKER CERTIFICATE COLUMN CONTRACT CREDENTIAL CRYPTOGRAPHIC DATABASE
    ENDPOINT EVENT FULLTEXT INDEX LOGIN MASTER MESSAGE PARTITION QUEUE REMOTE RESOURCE ROUTE SEARCH SECURITY SELECTIVE
    SERVER SERVICE SIGNATURE SPATIAL STATISTICS SYMMETRIC TYPE USER WORKLOAD XML"""
)
"""Objects of CREATE, ALTER and DROP that hold no rows: DROP COLUMN MASTER KEY, CREATE PARTITION FUNCTION …"""
_DEFINING: Final = frozenset({"CREATE", "ALTER", "DROP"})
_NO_COLUMNS: Final = word_set("INDEX PERIOD CONSTRAINT DEFAULT CHECK UNIQUE PRIMARY FOREIGN")
"""Objects beside columns that ALTER TABLE adds, changes or drops."""
_OF_COLUMNS: Final = word_set("MASKED ROWGUIDCOL PERSISTED SPARSE HIDDEN NOT")
"""Properties of a column beside its type that ALTER COLUMN adds or drops."""
_CALLED: Final = frozenset({marks.VAR, marks.IDENTIFIER})


def rewritten(reader: StatementReader, tokens: list[Token]) -> bool:
    """Add a statement that the parser does not know; False, and nothing added, for any other."""
    head = word(tokens[0])
    second = word(tokens[1]) if len(tokens) > 1 else ""
    if head == "BULK" and second == "INSERT":
        return _bulk_insert(reader, tokens)
    if head == "ALTER" and second == "TABLE" and (_switched(reader, tokens) or _indexed(reader, tokens)):
        return True
    if head == "CREATE" and second == "TYPE" and table_types.created(reader, tokens):
        return True
    if head == "SET" and _changed_in_place(reader, tokens):
        return True
    if head == "SEND" and second == "ON":
        message = "SEND puts a message into a queue: what it holds is not followed"
        reader.add(tokens, None, "opaque", reader.diagnostic("opaque", "warning", message, tokens[0]))
        return True
    if _administers(tokens, head):
        reader.add(tokens, None, "ignored")
        return True
    return _call(reader, tokens)


def _administers(tokens: list[Token], head: str) -> bool:
    """Return whether a statement is about the session or the server, or about objects without rows."""
    if head == "SET":
        return len(tokens) > 1 and tokens[1].token_type != marks.PARAMETER
    return head in _ADMINISTRATION or (head in _DEFINING and _holds_no_rows(tokens))


def _holds_no_rows(tokens: list[Token]) -> bool:
    kind = next((w for t in tokens[1:5] if (w := word(t)) not in ("UNIQUE", "CLUSTERED", "NONCLUSTERED", "OR")), "")
    if kind == "EXTERNAL":
        return any(
            word(t) in ("SOURCE", "FORMAT", "LIBRARY", "LANGUAGE", "POOL", "MODEL", "STREAM") for t in tokens[2:5]
        )
    return kind in _KEPT_ELSEWHERE or kind == "COLUMNSTORE"


def _changed_in_place(reader: StatementReader, tokens: list[Token]) -> bool:
    """``SET @doc.modify('…')``: the variable keeps what it came from, unless the text names another."""
    if len(tokens) < 7 or [t.token_type for t in tokens[1:6:2]] != [marks.PARAMETER, marks.DOT, marks.L_PAREN]:
        return False
    if any("sql:variable" in token.text or token.token_type == marks.PARAMETER for token in tokens[6:]):
        target = variables.targets_of(tokens[1:3], reader.lex.name)
        variables.unknown(reader, tokens, target, "a method that is not followed", head="assignment")
    else:
        reader.add(tokens, None, "ignored")
    return True


def _bulk_insert(reader: StatementReader, tokens: list[Token]) -> bool:
    """``BULK INSERT t FROM 'file' WITH (…)``: the rows of a file."""
    at = find_word(tokens, {"FROM"}, 2)
    if at < 3 or at + 1 >= len(tokens):
        return False
    here = tokens[at]
    row = [
        like(here, marks.SELECT, "SELECT"),
        like(here, marks.NUMBER, "1"),
    ]
    insert = [like(here, marks.INSERT, "INSERT"), like(here, marks.INTO, "INTO")]
    target = reader.attempt([*insert, *tokens[2:at], *row])
    if not isinstance(target, exp.Insert):
        return False
    path = tokens[at + 1]
    if path.token_type not in STRING_TYPES:
        return False
    tree = exp.LoadData(this=target.this, local=False, overwrite=False, inpath=exp.Literal.string(path.text))
    reader.add(tokens, tree, "parsed", head="bulk insert")
    return True


def _switched(reader: StatementReader, tokens: list[Token]) -> bool:
    """``ALTER TABLE a SWITCH [PARTITION n] TO b [PARTITION m] [WITH (…)]``: the rows of a come into b."""
    at = find_word(tokens, {"SWITCH"}, 3)
    to = find_word(tokens, {"TO"}, at) if at > 0 else -1
    if to < 0 or to + 1 >= len(tokens):
        return False
    end = find_word(tokens, {"PARTITION", "WITH"}, to)
    return moved_rows(reader, tokens, tokens[to + 1 : end if end > 0 else len(tokens)], tokens[2:at])


def _indexed(reader: StatementReader, tokens: list[Token]) -> bool:
    """``ALTER TABLE t ADD | ALTER | DROP INDEX …``, and what else of a table is not about its columns."""
    at = find_word(tokens, {"ADD", "ALTER", "DROP", "REBUILD", "SET", "ENABLE", "DISABLE", "CHECK", "NOCHECK"}, 3)
    if at < 0:
        return False
    adds = find_word(tokens, {"ADD", "DROP"}, at + 3)
    if word(tokens[at]) == "ALTER" and 0 < adds < len(tokens) - 1 and word(tokens[adds + 1]) in _OF_COLUMNS:
        reader.add(tokens, None, "ignored")
        return True
    if word(tokens[at]) in ("ADD", "ALTER", "DROP"):
        for item in split(tokens[at + 1 :]):
            if not item or word(item[0]).partition(" ")[0] not in _NO_COLUMNS:
                return False
    reader.add(tokens, None, "ignored")
    return True


def _call(reader: StatementReader, tokens: list[Token]) -> bool:
    """``name @a = 1, @b = 2`` at the head of a batch: EXEC may be left out there ("EXECUTE")."""
    if tokens[0].token_type not in _CALLED:
        return False
    end = 1
    while end < len(tokens) and tokens[end].token_type == marks.DOT:
        end += 1
        end += end < len(tokens) and tokens[end].token_type != marks.DOT
    if end >= len(tokens) or not (
        tokens[end].token_type in (marks.PARAMETER, marks.NUMBER, marks.DASH, marks.NULL, marks.DEFAULT)
        or tokens[end].token_type in STRING_TYPES
    ):
        return False
    call = [like(tokens[0], TokenType.EXECUTE, "EXEC"), *tokens]
    return dynamic.read(reader, call, "EXEC")
