"""Second chances for statements that the parser does not understand, where a part of them carries lineage.

Each rescue rewrites tokens, never text, so that places stay true. What is left out is said in a ``dropped``
diagnostic; what
cannot be rescued is ``opaque`` (the parser knows it is a statement, and no more) or ``failed``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql.blocks import ignored
from govtool.capture.sql.lexer import STRING_TYPES, NestingError, closing, find_word, word, word_set

if TYPE_CHECKING:
    from govtool.capture.sql.script import ScriptReader

_QUERY_WORDS = frozenset(
    {
        "SELECT",
        "FROM",
        "JOIN",
        "UNION",
        "INTERSECT",
        "EXCEPT",
        "MINUS",
        "WHERE",
        "INTO",
        "USING",
        "VALUES",
        "SET",
        "INSERT",
    }
)
_RELATIONS = frozenset({"TABLE", "VIEW"})
_HARMLESS_CREATE = word_set(
    """DATABASE SCHEMA ROLE USER INDEX EXTENSION SEQUENCE TYPE DOMAIN WAREHOUSE STAGE FORMAT INTEGRATION CATALOG
    CONNECTION LOGIN GROUP POLICY PUBLICATION SUBSCRIPTION SERVER MAPPING TABLESPACE OPERATOR CAST COLLATION
    CONVERSION LANGUAGE RULE STATISTICS SYNONYM RESERVATION CAPACITY ASSIGNMENT SECRET SHARE RECIPIENT VOLUME
    CREDENTIAL NOTIFICATION NETWORK RESOURCE MONITOR TAG DIRECTORY PROFILE AGGREGATE DICTIONARY QUOTA CONSTRAINT
    PARTITION PROCEDURE FUNCTION SEARCH VECTOR"""
)
_HARMLESS_ALTER = word_set(
    """SESSION SYSTEM USER ROLE DATABASE SCHEMA WAREHOUSE INDEX SEQUENCE FUNCTION PROCEDURE TYPE DOMAIN DEFAULT
    EXTENSION TASK PIPE POLICY STAGE INTEGRATION LOGIN AUTHORIZATION SERVER TRIGGER RESERVATION CAPACITY
    ORGANIZATION PROJECT BI PUBLICATION SUBSCRIPTION GROUP ACCOUNT SHARE ALERT STREAM TABLESPACE PARTITION SYNONYM
    PACKAGE AGGREGATE COLLATION LARGE RULE TEXT STATISTICS EVENT VOLUME CATALOG CONNECTION EXTERNAL"""
)
_LINEAGE_ALTER = frozenset({"ADD", "DROP", "RENAME", "SWAP", "EXCHANGE", "CHANGE", "REPLACE", "AS"})

_Rewrite: TypeAlias = Callable[["ScriptReader", list[Token]], bool]


def failed(reader: ScriptReader, tokens: list[Token], error: Exception) -> None:
    """A statement that does not parse: rescue it, or report it."""
    head = word(tokens[0])
    if not isinstance(error, (RecursionError, MemoryError, NestingError)):
        rewrite = _REWRITES.get(head)
        if rewrite is not None and rewrite(reader, tokens):
            return
        if _with_long_numbers(reader, tokens) or _without_tail(reader, tokens, error):
            return
        if ignored(head):
            reader.add(tokens, None, "ignored")
            return
        if tokens[0].token_type in reader.lex.commands:
            command(reader, tokens)
            return
    reader.add(tokens, None, "failed", reader.parse_error(error, tokens))


def command(reader: ScriptReader, tokens: list[Token]) -> None:
    """A statement that sqlglot keeps as text."""
    head = word(tokens[0])
    rewrite = _REWRITES.get(head)
    if rewrite is not None and rewrite(reader, tokens):
        return
    words = [word(t) for t in tokens[1:8]]
    if (
        ignored(head)
        or head in ("SET", "RESET", "REFRESH", "USE")
        or not any(w in _QUERY_WORDS for w in _words(tokens))
    ):
        if head == "CREATE" and any(w in _RELATIONS for w in words):
            _opaque(reader, tokens, "a CREATE that is not understood")
        elif head == "ALTER" and not _harmless_alter(tokens):
            _opaque(reader, tokens, "an ALTER that is not understood")
        else:
            reader.add(tokens, None, "ignored")
        return
    if head == "CREATE" and any(w in _HARMLESS_CREATE for w in words[:4]) and "SELECT" not in _words(tokens):
        reader.add(tokens, None, "ignored")
        return
    if head == "ALTER" and _harmless_alter(tokens):
        reader.add(tokens, None, "ignored")
        return
    _opaque(reader, tokens, f"{printable_head(tokens)} is not understood")


def printable_head(tokens: list[Token]) -> str:
    """The first words of a statement, for a message."""
    return " ".join(w for w in (word(t) for t in tokens[:2]) if w.replace("_", "").isalnum())[:60] or "a statement"


def _words(tokens: list[Token]) -> set[str]:
    return {word(t) for t in tokens}


def _opaque(reader: ScriptReader, tokens: list[Token], message: str) -> None:
    reader.add(tokens, None, "opaque", reader.diagnostic("opaque", "warning", message, tokens[0]))


def _harmless_alter(tokens: list[Token]) -> bool:
    kind = word(tokens[1]) if len(tokens) > 1 else ""
    if kind in _HARMLESS_ALTER and kind != "EXTERNAL":
        return True
    return not any(word(t) in _LINEAGE_ALTER for t in tokens[2:12]) or {"PARTITION"} <= {word(t) for t in tokens[3:9]}


# -- leaving out
# --------------------------------------------------------------------------------------------------------


def _without_tail(reader: ScriptReader, tokens: list[Token], error: Exception) -> bool:
    """Parse up to the token that the parser stopped at, if nothing behind it reads or writes a relation."""
    from govtool.capture.sql.script import error_token

    stop = error_token(error, tokens)
    index = next((i for i, t in enumerate(tokens) if t is stop), 0)
    for cut in (index, index - 1):
        if cut < 4 or any(word(t) in _QUERY_WORDS for t in tokens[cut:]) or not _balanced(tokens[:cut]):
            continue
        if word(tokens[0]) not in (
            "SELECT",
            "WITH",
            "INSERT",
            "CREATE",
            "MERGE",
            "UPDATE",
            "DELETE",
            "COPY",
            "UNLOAD",
            "FROM",
            "ALTER",
        ):
            return False
        tree = reader.attempt(tokens[:cut])
        if tree is None or isinstance(tree, (exp.Alias, exp.Column)):
            continue
        _dropped(reader, tokens, tree, tokens[cut:])
        return True
    return False


def _with_long_numbers(reader: ScriptReader, tokens: list[Token]) -> bool:
    """``100_000`` where the parser does not know it (Trino): a number, not a number with an alias."""
    joined: list[Token] = []
    for token in tokens:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.token_type == TokenType.NUMBER
            and last.end + 1 == token.start
            and token.text[:1] == "_"
            and token.text.replace("_", "").isdigit()
        ):
            text = last.text + token.text.replace("_", "")
            joined[-1] = Token(TokenType.NUMBER, text, token.line, token.col, last.start, token.end)
        else:
            joined.append(token)
    if len(joined) == len(tokens):
        return False
    tree = reader.attempt(joined)
    if tree is not None:
        reader.add(tokens, tree, "parsed")
    return tree is not None


def _balanced(tokens: list[Token]) -> bool:
    depth = 0
    for token in tokens:
        if token.token_type == TokenType.L_PAREN:
            depth += 1
        elif token.token_type == TokenType.R_PAREN:
            depth -= 1
    return depth == 0


def _dropped(reader: ScriptReader, tokens: list[Token], tree: exp.Expr, left_out: list[Token]) -> None:
    what = " ".join(word(t) or t.text for t in left_out[:3])[:40]
    message = f"the clause that begins with {what!r} is not understood and was left out"
    reader.add(tokens, tree, "parsed", reader.diagnostic("dropped", "warning", message, left_out[0]))


# -- rewriting
# ----------------------------------------------------------------------------------------------------------


def _like(token: Token, kind: TokenType, text: str) -> Token:
    """A token that stands where another does."""
    return Token(kind, text, token.line, token.col, token.start, token.end)


def _create(reader: ScriptReader, tokens: list[Token]) -> bool:
    """A CREATE with clauses that the parser does not know: keep the name, the columns and the query."""
    if _without_word(reader, tokens, "SNAPSHOT"):
        return True
    kind_at = next(
        (i for i, t in enumerate(tokens[1:8], 1) if word(t) in ("TABLE", "VIEW", "TASK", "PIPE", "STREAM")), -1
    )
    if kind_at < 0:
        return False
    kind = word(tokens[kind_at])
    if kind in ("TASK", "PIPE"):
        index = find_word(tokens, {"AS"}, kind_at)
        if index < 0 or index + 1 >= len(tokens):
            return False
        reader.statement(tokens[index + 1 :])
        return True
    if kind == "STREAM":
        return _stream(reader, tokens, kind_at)
    name_end = kind_at + 1
    while name_end < len(tokens) and word(tokens[name_end]) in ("IF", "NOT", "EXISTS"):
        name_end += 1
    name_start = name_end
    name_end += 1
    while name_end + 1 < len(tokens) and tokens[name_end].token_type == TokenType.DOT:
        name_end += 2
    columns_end = name_end
    if columns_end < len(tokens) and tokens[columns_end].token_type == TokenType.L_PAREN:
        columns_end = closing(tokens, columns_end) + 1
    head = tokens[:1]
    if len(tokens) > 2 and word(tokens[1]) == "OR" and word(tokens[2]) in ("REPLACE", "ALTER", "REFRESH"):
        head = [tokens[0], tokens[1], _like(tokens[2], TokenType.REPLACE, "REPLACE")]
    modifiers = [t for t in tokens[len(head) : kind_at] if word(t) in ("TEMP", "TEMPORARY", "MATERIALIZED")]
    head = [*head, *modifiers, tokens[kind_at]]
    query_at = columns_end - 1
    while True:
        query_at = find_word(tokens, {"AS"}, query_at + 1)
        if query_at < 0 or query_at + 1 >= len(tokens):
            break
        following = tokens[query_at + 1]
        if (
            word(following) in ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
            or following.token_type == TokenType.L_PAREN
        ):
            for columns in (tokens[name_start:columns_end], tokens[name_start:name_end]):
                tree = reader.attempt([*head, *columns, *tokens[query_at:]])
                if tree is not None:
                    _dropped(
                        reader, tokens, tree, tokens[columns_end:query_at] or tokens[1:kind_at] or tokens[name_end:]
                    )
                    return True
                tail = _last_with(tokens, query_at)
                tree = reader.attempt([*head, *columns, *tokens[query_at:tail]]) if tail > 0 else None
                if tree is not None:
                    _dropped(reader, tokens, tree, tokens[tail:])
                    return True
            return False
    if columns_end > name_end:
        tree = reader.attempt([*head, *tokens[name_start:columns_end]])
        if tree is not None:
            _dropped(reader, tokens, tree, tokens[columns_end:] or tokens[1:kind_at] or tokens[:1])
            return True
    return False


def _last_with(tokens: list[Token], start: int) -> int:
    """Where ``WITH CHECK OPTION``, ``WITH READ ONLY`` and the like begin; -1 if nothing of the kind ends the
    statement.
    """
    for index in range(len(tokens) - 1, max(start + 2, len(tokens) - 8), -1):
        if word(tokens[index]) == "WITH":
            return index
    return -1


def _without_word(reader: ScriptReader, tokens: list[Token], text: str) -> bool:
    """BigQuery's ``CREATE | DROP SNAPSHOT TABLE``: a table like others, for lineage."""
    at = next((i for i, t in enumerate(tokens[1:5], 1) if word(t) == text), -1)
    if at < 0:
        return False
    tree = reader.attempt([*tokens[:at], *tokens[at + 1 :]])
    if tree is None:
        at_time = find_word(tokens, {"FOR"}, at)
        tree = reader.attempt([*tokens[:at], *tokens[at + 1 : at_time]]) if at_time > 0 else None
    if tree is None:
        return False
    reader.add(tokens, tree, "parsed")
    return True


def _drop(reader: ScriptReader, tokens: list[Token]) -> bool:
    return _without_word(reader, tokens, "SNAPSHOT")


def _stream(reader: ScriptReader, tokens: list[Token], kind_at: int) -> bool:
    """Snowflake's ``CREATE STREAM s ON TABLE t``: reads as a view of all of t."""
    on = find_word(tokens, {"ON"}, kind_at)
    if on < 0 or on + 2 >= len(tokens) or word(tokens[on + 1]) not in ("TABLE", "VIEW", "DYNAMIC", "EXTERNAL", "EVENT"):
        return False
    start = on + 2
    while start < len(tokens) and word(tokens[start]) in ("TABLE", "VIEW"):
        start += 1
    end = start + 1
    while end + 1 < len(tokens) and tokens[end].token_type == TokenType.DOT:
        end += 2
    here = tokens[on]
    query = [
        _like(here, TokenType.ALIAS, "AS"),
        _like(here, TokenType.SELECT, "SELECT"),
        _like(here, TokenType.STAR, "*"),
        _like(here, TokenType.FROM, "FROM"),
        *tokens[start:end],
    ]
    name_start = kind_at + 1
    while name_start < on and word(tokens[name_start]) in ("IF", "NOT", "EXISTS"):
        name_start += 1
    name_end = name_start + 1
    while name_end + 1 < on and tokens[name_end].token_type == TokenType.DOT:
        name_end += 2
    tree = reader.attempt(
        [tokens[0], _like(tokens[kind_at], TokenType.VIEW, "VIEW"), *tokens[name_start:name_end], *query]
    )
    if tree is None:
        return False
    reader.add(tokens, tree, "parsed")
    return True


def _replace_into(reader: ScriptReader, tokens: list[Token]) -> bool:
    """MySQL's and SQLite's REPLACE: an INSERT that deletes what it collides with."""
    start = 1
    while start < len(tokens) and word(tokens[start]) in ("LOW_PRIORITY", "DELAYED"):
        start += 1
    into = [] if start < len(tokens) and word(tokens[start]) == "INTO" else [_like(tokens[0], TokenType.INTO, "INTO")]
    tree = reader.attempt([_like(tokens[0], TokenType.INSERT, "INSERT"), *into, *tokens[start:]])
    if tree is None:
        return False
    reader.add(tokens, tree, "parsed", head="insert")
    return True


def _rename(reader: ScriptReader, tokens: list[Token]) -> bool:
    """``RENAME TABLE a TO b, c TO d`` as one ALTER a pair."""
    start = 2 if len(tokens) > 1 and word(tokens[1]) in ("TABLE", "TABLES") else 1
    pairs: list[list[Token]] = [[]]
    for token in tokens[start:]:
        if token.token_type == TokenType.COMMA:
            pairs.append([])
        else:
            pairs[-1].append(token)
    done = False
    for pair in pairs:
        to = find_word(pair, {"TO"}, 1)
        if to < 0:
            return done
        here = pair[0]
        tree = reader.attempt(
            [
                _like(here, TokenType.ALTER, "ALTER"),
                _like(here, TokenType.TABLE, "TABLE"),
                *pair[:to],
                _like(here, TokenType.VAR, "RENAME"),
                *pair[to:],
            ]
        )
        if tree is None:
            return done
        reader.add(pair, tree, "parsed", head="rename")
        done = True
    return done


def _unload(reader: ScriptReader, tokens: list[Token]) -> bool:
    """``UNLOAD ('query') TO 'file' …`` (Redshift), ``UNLOAD (query) TO 'file'`` (Athena), as a COPY of the query."""
    if len(tokens) < 4 or tokens[1].token_type != TokenType.L_PAREN:
        return False
    end = closing(tokens, 1)
    inside = tokens[2:end]
    target = next((t for t in tokens[end + 1 : end + 4] if t.token_type in STRING_TYPES), None)
    if not inside or target is None:
        return False
    query: exp.Expr | None
    if len(inside) == 1 and inside[0].token_type in STRING_TYPES:
        text = inside[0].text
        try:
            query = reader.lex.parse(reader.lex.tokenize(text), text)
        except Exception:
            return False
    else:
        query = reader.attempt(inside)
    if not isinstance(query, exp.Query):
        return False
    tree = exp.Copy(this=exp.Subquery(this=query), kind=False, files=[exp.Literal.string(target.text)])
    reader.add(tokens, tree, "parsed", head="unload")
    return True


def _explained(reader: ScriptReader, tokens: list[Token]) -> bool:
    reader.add(tokens, None, "ignored")
    return True


def _declare(reader: ScriptReader, tokens: list[Token]) -> bool:
    reader.add(tokens, None, "ignored")
    return True


def _alter(reader: ScriptReader, tokens: list[Token]) -> bool:
    """``ALTER TABLE a EXCHANGE PARTITION (…) WITH TABLE b``: rows of b come into a."""
    view = next((i for i, t in enumerate(tokens[1:10], 1) if word(t) == "VIEW"), -1)
    if view > 0:
        return _alter_view(reader, tokens, view)
    exchange = find_word(tokens, {"EXCHANGE"}, 2)
    table = find_word(tokens, {"TABLE"}, exchange + 1) if exchange > 0 else -1
    if table < 0:
        return False
    end = table + 2
    while end + 1 < len(tokens) and tokens[end].token_type == TokenType.DOT:
        end += 2
    here = tokens[0]
    tree = reader.attempt(
        [
            _like(here, TokenType.INSERT, "INSERT"),
            _like(here, TokenType.INTO, "INTO"),
            *tokens[2:exchange],
            _like(here, TokenType.SELECT, "SELECT"),
            _like(here, TokenType.STAR, "*"),
            _like(here, TokenType.FROM, "FROM"),
            *tokens[table + 1 : end],
        ]
    )
    if tree is None:
        return False
    reader.add(tokens, tree, "parsed", head="alter")
    return True


def _alter_view(reader: ScriptReader, tokens: list[Token], view: int) -> bool:
    """``ALTER … VIEW v … AS query`` with options between: as CREATE OR REPLACE VIEW."""
    end = view + 2
    while end + 1 < len(tokens) and tokens[end].token_type == TokenType.DOT:
        end += 2
    query = find_word(tokens, {"AS"}, end)
    if query < 0:
        return False
    here = tokens[0]
    head = [
        _like(here, TokenType.CREATE, "CREATE"),
        _like(here, TokenType.OR, "OR"),
        _like(here, TokenType.REPLACE, "REPLACE"),
    ]
    tail = _last_with(tokens, query)
    for stop in (len(tokens), tail):
        tree = reader.attempt([*head, *tokens[view:end], *tokens[query:stop]]) if stop > 0 else None
        if tree is not None:
            reader.add(tokens, tree, "parsed")
            return True
    return False


_REWRITES: dict[str, _Rewrite] = {
    "CREATE": _create,
    "REPLACE": _replace_into,
    "RENAME": _rename,
    "UNLOAD": _unload,
    "EXPLAIN": _explained,
    "DECLARE": _declare,
    "ALTER": _alter,
    "DROP": _drop,
}
