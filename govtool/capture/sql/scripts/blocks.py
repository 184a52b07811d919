"""Control flow and routine bodies, flattened to the statements in them.

A piece between two semicolons may begin with any amount of control flow (``ELSE BEGIN IF x THEN INSERT …``).
``flatten``
strips it word by word and hands the statement behind it to the reader. Conditions are dropped: they decide whether a
statement runs, not what it writes. Which arm of which branch a statement stands in is kept (``branches``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import Token

from govtool.capture.sql import marks
from govtool.capture.sql.lexer import STRING_TYPES, closing, find_word, word, word_set
from govtool.capture.sql.scripts import dynamic, routines
from govtool.capture.sql.scripts.branches import Branches

if TYPE_CHECKING:
    from govtool.capture.sql.scripts.script import ScriptReader

SECTION_DIALECTS = frozenset({"", "postgres", "redshift", "snowflake", "oracle", "materialize", "risingwave"})
"""Dialects whose blocks declare variables in a section before BEGIN, without a keyword on each."""

_TRANSACTION = frozenset(
    {"TRANSACTION", "TRAN", "WORK", "ISOLATION", "DEFERRED", "IMMEDIATE", "EXCLUSIVE", "READ", "CONCURRENT", "NAME"}
)
_BLOCKS = frozenset({"IF", "LOOP", "WHILE", "CASE", "FOR", "REPEAT", "TRY", "CATCH"})
_CONTROL = frozenset({"IF", "ELSE", "WHILE", "BEGIN", "END"})
_QUERY = frozenset({"SELECT", "WITH"})
_STATEMENTS = word_set(
    """SELECT WITH INSERT UPDATE DELETE MERGE SET RETURN BEGIN IF CASE CALL EXECUTE EXEC CREATE DROP ALTER TRUNCATE
    LOOP WHILE FOR REPEAT LEAVE ITERATE NULL RAISE SIGNAL OPEN FETCH CLOSE DECLARE LET COPY COMMIT ROLLBACK
    PERFORM EXIT CONTINUE BREAK"""
)
_NO_ASSIGNMENT = frozenset({"SET", "UPDATE", "INSERT", "MERGE", "DELETE", "ALTER", "COPY"})

IGNORED = word_set(
    """COMMIT ROLLBACK SAVEPOINT RELEASE GRANT REVOKE DENY PRINT RAISE RAISERROR THROW SIGNAL RESIGNAL LEAVE ITERATE
    BREAK CONTINUE EXIT GOTO NULL FETCH CLOSE DEALLOCATE WAITFOR VACUUM ANALYZE ANALYSE OPTIMIZE SHOW DESCRIBE
    DESC HELP LOCK UNLOCK LISTEN NOTIFY UNLISTEN DISCARD RESET REINDEX CLUSTER CHECKPOINT KILL FLUSH SYSTEM MSCK
    REPAIR CACHE UNCACHE INVALIDATE ADD LIST PUT GET REMOVE RM LS UNSET SIGN ATTACH DETACH INSTALL START STOP
    PAUSE RESUME SUSPEND AUDIT NOAUDIT PURGE FLASHBACK BACKUP RESTORE DBCC COLLECT SAVE USE COMMENT SECURITY
    REASSIGN DELIMITER EXPLAIN PRAGMA HANDLER XA STATISTICS VACUUM GENERATE ZORDER ASSERT GET_DIAGNOSTICS UNDROP
    BUILD CANCEL RECOVER SUBMIT ADMIN CHECKSUM ABORT END"""
) | {"UPDATE STATISTICS"}
"""First words of statements that no value flows through."""


@dataclass(slots=True)
class Flow:
    """Where in the control flow of a script the reader is."""

    inside: bool = False
    """Within a routine's body or a block: procedural statements may occur."""
    depth: int = 0
    """Blocks that are open."""
    declarations: bool = False
    """In a declaration section."""
    owner: bool = False
    """The routine began in this text, and ends when its block closes."""
    package: bool = False
    """In a package: after a routine's block comes the next declaration."""
    branches: Branches = field(default_factory=Branches)


def ignored(head: str) -> bool:
    """Whether a statement with this first token (upper case) carries no lineage."""
    return head in IGNORED or (" " in head and head.partition(" ")[0] in IGNORED)


def flatten(reader: ScriptReader, tokens: list[Token]) -> None:
    """Strip the control flow from one piece, and read the statement behind it."""
    while tokens:
        head = word(tokens[0])
        reader.flow.branches.follows(head)
        rest = _strip(reader, tokens)
        if rest is tokens:
            _statement(reader, tokens)
        if rest is tokens or (rest is None and head not in _CONTROL):
            reader.flow.branches.passed()
        if rest is None or rest is tokens:
            return
        tokens = rest


def _branch(reader: ScriptReader, kind: str, *, always: bool = False, waits: bool = False) -> None:
    reader.branches += 1
    reader.flow.branches.begin(kind, reader.branches, reader.flow.depth, always=always, waits=waits)


def _strip(reader: ScriptReader, tokens: list[Token]) -> list[Token] | None:
    """What is left after one control word; the same list if none leads; None if all is consumed."""
    head = word(tokens[0])
    strip = _STRIPPERS.get(head)
    if strip is not None:
        return strip(reader, tokens)
    if len(tokens) > 1 and tokens[0].text == "<" and tokens[1].text == "<":
        return _after_label(tokens)
    if (
        len(tokens) > 2
        and tokens[1].token_type == marks.COLON
        and word(tokens[2]) in ("BEGIN", "LOOP", "WHILE", "REPEAT", "FOR")
    ):
        return tokens[2:]
    return tokens


def _after_label(tokens: list[Token]) -> list[Token]:
    for index in range(2, min(len(tokens) - 1, 8)):
        if tokens[index].text == ">" and tokens[index + 1].text == ">":
            return tokens[index + 2 :]
    return tokens


def _begin(reader: ScriptReader, tokens: list[Token]) -> list[Token] | None:
    second = word(tokens[1]) if len(tokens) > 1 else ""
    flow = reader.flow
    if second in _TRANSACTION or (
        len(tokens) == 1 and not flow.inside and reader.lex.name not in ("oracle", "tsql", "fabric")
    ):
        # A lone BEGIN at the top opens a transaction; in a routine, a block.
        reader.add(tokens, None, "ignored", head="begin")
        return None
    flow.inside = True
    flow.declarations = False
    flow.depth += 1
    flow.branches.block(flow.depth)
    if second == "CATCH":
        _branch(reader, "handler")
    skip = 1
    if second == "NOT":
        skip = 3
    elif second in ("TRY", "CATCH", "ATOMIC"):
        skip = 2
    return tokens[skip:]


def _end(reader: ScriptReader, tokens: list[Token]) -> list[Token] | None:
    flow = reader.flow
    index = 1
    block = ""
    if len(tokens) > 1 and word(tokens[1]) in _BLOCKS:
        block = word(tokens[1])
        index = 2
    elif len(tokens) > 1 and word(tokens[1]) in ("TRANSACTION", "WORK"):
        index = 2
    unseparated = reader.lex.name in ("tsql", "fabric")
    if block in _ENDED:
        flow.branches.end(_ENDED[block])
    elif not block and not unseparated and flow.branches.ends_case(flow.depth):
        return None
    if block in ("", "TRY", "CATCH") and flow.depth:
        if unseparated:
            flow.branches.block_passed(flow.depth)
        else:
            flow.branches.end_block(flow.depth)
        flow.depth -= 1
        if flow.depth == 0 and flow.package:
            flow.declarations = True
        elif flow.depth == 0 and flow.owner:
            reader.routine = None
            reader.flow = Flow()
        elif flow.depth == 0 and not reader.bodies and reader.routine is None:
            reader.flow = Flow(branches=flow.branches)
    if unseparated:
        return tokens[index:] or None
    return None


_ENDED = {
    "IF": ("if",),
    "CASE": ("case",),
    "CATCH": ("handler",),
    "LOOP": ("loop",),
    "WHILE": ("loop",),
    "FOR": ("loop",),
    "REPEAT": ("loop",),
}
"""The branches that an END with a word behind it may end."""


def _loop(reader: ScriptReader, tokens: list[Token]) -> list[Token] | None:
    """LOOP, REPEAT: a body that runs at least once."""
    reader.flow.inside = True
    _branch(reader, "loop", always=True)
    return tokens[1:] or None


def _else(reader: ScriptReader, tokens: list[Token]) -> list[Token] | None:
    if reader.lex.name not in ("tsql", "fabric"):
        reader.flow.branches.next(("if", "case"), rest=True)
    return tokens[1:] or None


def _to_then(reader: ScriptReader, tokens: list[Token]) -> list[Token] | None:
    """IF, ELSEIF, CASE, WHEN, EXCEPTION: what follows THEN."""
    if len(tokens) > 1 and word(tokens[0]) == "IF" and reader.lex.name in ("tsql", "fabric"):
        # The condition is a piece of its own there, unless a call opens it: see ``tsql.split_statements``.
        _branch(reader, "if", waits=True)
        return None
    index = find_word(tokens, {"THEN"}, 1)
    if index > 0 and word(tokens[0]) == "CASE" and not _begins_statement(tokens, index + 1):
        return tokens
    if index < 0:
        if word(tokens[0]) == "EXCEPTION":
            return tokens[1:] or None
        return tokens if word(tokens[0]) in ("IF", "CASE", "WHEN") else None
    reader.flow.inside = True
    head = word(tokens[0])
    if head in _OPENED:
        _branch(reader, _OPENED[head])
    else:
        reader.flow.branches.next(("case", "handler") if head == "WHEN" else ("if",))
    return tokens[index + 1 :] or None


_OPENED = {"IF": "if", "CASE": "case", "EXCEPTION": "handler"}


def _begins_statement(tokens: list[Token], index: int) -> bool:
    """Whether a statement stands behind a THEN; an expression does in a CASE expression."""
    if index >= len(tokens):
        return True
    if index + 1 < len(tokens) and tokens[index + 1].token_type == marks.COLON_EQ:
        return True
    return word(tokens[index]) in _STATEMENTS


def _while(reader: ScriptReader, tokens: list[Token]) -> list[Token] | None:
    if reader.lex.name in ("tsql", "fabric"):
        _branch(reader, "loop", waits=True)
        return None
    index = find_word(tokens, {"DO", "LOOP"}, 1)
    if index < 0:
        return tokens
    reader.flow.inside = True
    _branch(reader, "loop")
    return tokens[index + 1 :] or None


def _for(reader: ScriptReader, tokens: list[Token]) -> list[Token] | None:
    """``FOR r IN (query) DO``, ``FOR r IN query LOOP``: the query is read by the loop."""
    index = find_word(tokens, {"DO", "LOOP"}, 1)
    if index < 0:
        return tokens
    start = find_word(tokens[:index], {"IN", "FOR"}, 1)
    if start >= 0:
        _query(reader, tokens[start + 1 : index])
    reader.flow.inside = True
    _branch(reader, "loop")
    return tokens[index + 1 :] or None


def _until(reader: ScriptReader, tokens: list[Token]) -> list[Token] | None:
    """``UNTIL condition END REPEAT``."""
    reader.flow.branches.end(("loop",))
    return None


def _declare(reader: ScriptReader, tokens: list[Token]) -> list[Token] | None:
    flow = reader.flow
    name = reader.lex.name
    handler = find_word(tokens, {"HANDLER"}, 1)
    if handler > 0:
        index = find_word(tokens, {"BEGIN"}, handler)
        if index < 0:
            return None
        flow.depth += 1
        _branch(reader, "handler")
        return tokens[index + 1 :] or None
    if name in SECTION_DIALECTS and (flow.inside or name in ("snowflake", "oracle")):
        flow.inside = flow.declarations = True
        return tokens[1:] or None
    cursor = find_word(tokens, {"CURSOR"}, 1)
    if cursor > 0:
        _query(reader, tokens[cursor + 1 :])
        return None
    return tokens


def _return(reader: ScriptReader, tokens: list[Token]) -> list[Token] | None:
    second = word(tokens[1]) if len(tokens) > 1 else ""
    if second == "QUERY":
        if len(tokens) > 2 and word(tokens[2]) == "EXECUTE":
            return tokens[2:]
        return tokens[2:] or None
    rest = tokens[1:]
    if _has_query(rest):
        _query(reader, rest)
    else:
        reader.add(tokens, None, "ignored")
    return None


def _open(reader: ScriptReader, tokens: list[Token]) -> list[Token] | None:
    index = find_word(tokens, {"FOR"}, 1)
    if index < 0 or not _has_query(tokens[index:]):
        reader.add(tokens, None, "ignored")
        return None
    return tokens[index + 1 :]


def _perform(reader: ScriptReader, tokens: list[Token]) -> list[Token] | None:
    if _has_query(tokens):
        _query(reader, tokens[1:])
    else:
        reader.add(tokens, None, "ignored")
    return None


_STRIPPERS = {
    "BEGIN": _begin,
    "END": _end,
    "ELSE": _else,
    "LOOP": _loop,
    "REPEAT": _loop,
    "DO": routines.do_block,
    "IF": _to_then,
    "ELSEIF": _to_then,
    "ELSIF": _to_then,
    "CASE": _to_then,
    "WHEN": _to_then,
    "EXCEPTION": _to_then,
    "WHILE": _while,
    "FOR": _for,
    "FOREACH": _for,
    "UNTIL": _until,
    "DECLARE": _declare,
    "RETURN": _return,
    "OPEN": _open,
    "PERFORM": _perform,
    "CREATE": routines.create,
}


def _has_query(tokens: Sequence[Token]) -> bool:
    return any(word(t) == "SELECT" for t in tokens)


def _query(reader: ScriptReader, tokens: list[Token]) -> None:
    """Read the query in these tokens, if there is one: past ``SCROLL FOR`` and ``IS``, out of parentheses."""
    for index, token in enumerate(tokens):
        text = word(token)
        if text in _QUERY:
            end = len(tokens)
            if index and tokens[index - 1].token_type == marks.L_PAREN:
                end = max(closing(tokens, index - 1), index + 1)
            reader.statement(without_variables(reader, tokens[index:end]))
            return


def without_variables(reader: ScriptReader, tokens: list[Token]) -> list[Token]:
    """A query of a routine without its ``INTO variable, …`` clause (in T-SQL, INTO makes a table and stays)."""
    if (
        reader.lex.name in ("tsql", "fabric")
        or not reader.flow.inside
        or word(tokens[0]) not in ("SELECT", "WITH", "FETCH")
    ):
        return tokens
    index = find_word(tokens, {"INTO"}, 1)
    if index < 0 or word(tokens[index - 1]) in ("INSERT", "MERGE"):
        return tokens
    end = index + 1
    if end < len(tokens) and word(tokens[end]) == "STRICT":
        end += 1
    while end < len(tokens) and word(tokens[end]) not in (
        "FROM",
        "WHERE",
        "GROUP",
        "ORDER",
        "LIMIT",
        "USING",
        "HAVING",
        "UNION",
    ):
        kind = tokens[end].token_type
        if kind != marks.COMMA and end + 1 < len(tokens) and _names(tokens[end + 1]) and not _joins(tokens, end):
            end += 1
            break
        end += 1
    start = index
    if word(tokens[index - 1]) == "COLLECT" and index > 1 and word(tokens[index - 2]) == "BULK":
        start = index - 2
    return tokens[:start] + tokens[end:]


def _names(token: Token) -> bool:
    return token.token_type not in (
        marks.COMMA,
        marks.DOT,
        marks.COLON,
        marks.PARAMETER,
        marks.L_BRACKET,
    )


def _joins(tokens: list[Token], index: int) -> bool:
    return tokens[index].token_type in (marks.DOT, marks.COLON, marks.PARAMETER)


def _statement(reader: ScriptReader, tokens: list[Token]) -> None:
    """A piece without control flow in front."""
    flow = reader.flow
    head = word(tokens[0])
    if flow.declarations:
        _declaration(reader, tokens)
        return
    if dynamic.read(reader, tokens, head):
        return
    if head in ("SELECT", "WITH") and flow.inside:
        reader.statement(without_variables(reader, tokens))
        return
    if ignored(head) and not (head == "CACHE" and _has_query(tokens)):
        reader.add(tokens, None, "ignored")
        return
    if head == "LET":
        assigned = _assignment(tokens)
        if assigned is not None:
            _assigned(reader, tokens, assigned)
            return
    if flow.inside or reader.lex.name in ("snowflake", "oracle"):
        assigned = None if head in _NO_ASSIGNMENT else _assignment(tokens)
        if assigned is not None:
            _assigned(reader, tokens, assigned)
            return
    reader.statement(tokens)


def _assignment(tokens: list[Token]) -> int | None:
    """Where the value of ``name := value`` begins."""
    for index, token in enumerate(tokens[1:12], 1):
        if token.token_type == marks.COLON_EQ:
            return index + 1
        if token.token_type in STRING_TYPES:
            return None
    return None


def _assigned(reader: ScriptReader, tokens: list[Token], start: int) -> None:
    if _has_query(tokens[start:]):
        _query(reader, tokens[start:])
    else:
        reader.add(tokens, None, "ignored", head="assignment")


def _declaration(reader: ScriptReader, tokens: list[Token]) -> None:
    """``name type [:= value]`` or ``name CURSOR FOR query`` of a declaration section, or a routine of a package."""
    if word(tokens[0]) in ("PROCEDURE", "FUNCTION"):
        body = find_word(tokens, {"IS", "AS"}, 1)
        if body < 0:
            reader.add(tokens, None, "ignored", head="declare")
            return
        reader.add(tokens[:body], None, "ignored", head=f"create {word(tokens[0]).lower()}")
        flatten(reader, tokens[body + 1 :])
        return
    if _has_query(tokens):
        _query(reader, tokens)
    else:
        reader.add(tokens, None, "ignored", head="declare")
