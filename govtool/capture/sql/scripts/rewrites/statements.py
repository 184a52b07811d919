"""Statements rewritten token by token to a form that the parser reads, so that what they read and write is not lost."""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql.scripts.clauses.table import simplified
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.scripts.rewrites.create import create
from govtool.capture.sql.scripts.rewrites.tools import Rewrite, last_with, moved_rows, past, without, without_word
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import STRING_TYPES, closing, find_word, like, name_end, word


def _drop(reader: StatementReader, tokens: list[Token]) -> bool:
    return without_word(reader, tokens, "SNAPSHOT")


def _replace_into(reader: StatementReader, tokens: list[Token]) -> bool:
    """MySQL's and SQLite's REPLACE: an INSERT that deletes what it collides with."""
    start = past(tokens, 1, ("LOW_PRIORITY", "DELAYED"))
    into = [] if start < len(tokens) and word(tokens[start]) == "INTO" else [like(tokens[0], marks.INTO, "INTO")]
    tree = reader.attempt([like(tokens[0], marks.INSERT, "INSERT"), *into, *tokens[start:]])
    if tree is None:
        return False
    reader.add(tokens, tree, "parsed", head="insert")
    return True


def _rename(reader: StatementReader, tokens: list[Token]) -> bool:
    """``RENAME TABLE a TO b, c TO d`` as one ALTER a pair."""
    start = 2 if len(tokens) > 1 and word(tokens[1]) in ("TABLE", "TABLES") else 1
    pairs: list[list[Token]] = [[]]
    for token in tokens[start:]:
        if token.token_type == marks.COMMA:
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
                like(here, marks.ALTER, "ALTER"),
                like(here, marks.TABLE, "TABLE"),
                *pair[:to],
                like(here, marks.VAR, "RENAME"),
                *pair[to:],
            ]
        )
        if tree is None:
            return done
        reader.add(pair, tree, "parsed", head="rename")
        done = True
    return done


def _unload(reader: StatementReader, tokens: list[Token]) -> bool:
    """``UNLOAD ('query') TO 'file' …`` (Redshift), ``UNLOAD (query) TO 'file'`` (Athena), as a COPY of the query."""
    if len(tokens) < 4 or tokens[1].token_type != marks.L_PAREN:
        return False
    end = closing(tokens, 1)
    inside = tokens[2:end]
    target = next((t for t in tokens[end + 1 : end + 4] if t.token_type in STRING_TYPES), None)
    if not inside or target is None:
        return False
    query: exp.Expr | None
    if len(inside) == 1 and inside[0].token_type in STRING_TYPES:
        query = reader.attempt_text(inside[0].text)
    else:
        query = reader.attempt(inside)
    if not isinstance(query, exp.Query):
        return False
    tree = exp.Copy(this=exp.Subquery(this=query), kind=False, files=[exp.Literal.string(target.text)])
    reader.add(tokens, tree, "parsed", head="unload")
    return True


def _explained(reader: StatementReader, tokens: list[Token]) -> bool:
    reader.add(tokens, None, "ignored")
    return True


def _insert(reader: StatementReader, tokens: list[Token]) -> bool:
    """INSERT with a clause between its target and its rows: OVERRIDING … VALUE, the format of a DIRECTORY."""
    at = find_word(tokens, {"OVERRIDING"}, 2)
    if at > 0:
        return without(reader, tokens, at, at + 3)
    at = find_word(tokens, {"EXEC", "EXECUTE"}, 2)
    if at > 0:
        return _insert_exec(reader, tokens, at)
    directory = next((i for i, t in enumerate(tokens[1:5], 1) if word(t) == "DIRECTORY"), -1)
    at = find_word(tokens, {"USING"}, directory) if directory > 0 else -1
    if at < 0:
        return False
    end = at + 2
    if end + 1 < len(tokens) and word(tokens[end]) == "OPTIONS":
        end = closing(tokens, end + 1) + 1
    return without(reader, tokens, at, end)


def _insert_exec(reader: StatementReader, tokens: list[Token], at: int) -> bool:
    """T-SQL's INSERT … EXEC procedure: the rows come from what nobody here can read."""
    here = tokens[at]
    end = at + 1
    kind = tokens[end].token_type if end < len(tokens) else marks.L_PAREN
    if kind != marks.L_PAREN and kind not in STRING_TYPES:
        end += 1
        while end < len(tokens) and marks.DOT in (tokens[end].token_type, tokens[end - 1].token_type):
            end += 1
    rows = [like(here, marks.SELECT, "SELECT"), like(here, TokenType.NULL, "NULL")]
    tree = reader.attempt([*tokens[:at], *rows])
    if not isinstance(tree, exp.Insert):
        return False
    name = "".join(token.text for token in tokens[at + 1 : end]).lower()
    called = [exp.Var(this=name)] if name else []
    tree.set("expression", exp.Table(this=exp.Anonymous(this="exec", expressions=called)))
    message = f"the rows come from EXEC {name or '(…)'}: what it returns is not known"
    reader.add(tokens, tree, "parsed", reader.diagnostic("opaque", "warning", message, here))
    return True


def _merge(reader: StatementReader, tokens: list[Token]) -> bool:
    """Oracle's ``UPDATE SET … DELETE WHERE c`` in MERGE: a branch of its own that deletes."""
    out: list[Token] = []
    position = 0
    while True:
        at = find_word(tokens, {"DELETE"}, position)
        if at < 0 or at + 1 >= len(tokens):
            break
        if word(tokens[at + 1]) != "WHERE":
            out.extend(tokens[position : at + 1])
            position = at + 1
            continue
        end = find_word(tokens, {"WHEN"}, at)
        end = end if end > 0 else len(tokens)
        here = tokens[at]
        out.extend(tokens[position:at])
        out.extend(
            (
                like(here, marks.WHEN, "WHEN"),
                like(here, marks.VAR, "MATCHED"),
                like(here, marks.AND, "AND"),
            )
        )
        out.extend(tokens[at + 2 : end])
        out.extend((like(here, marks.THEN, "THEN"), here))
        position = end
    if not out:
        return False
    tree = reader.attempt([*out, *tokens[position:]])
    if tree is not None:
        reader.add(tokens, tree, "parsed")
    return tree is not None


def _load(reader: StatementReader, tokens: list[Token]) -> bool:
    """MySQL's ``LOAD DATA [LOCAL] INFILE 'file' [REPLACE | IGNORE] INTO TABLE t …``."""
    file = find_word(tokens, {"INFILE"}, 1)
    table = find_word(tokens, {"TABLE"}, file) if file > 0 else -1
    if table < 0 or file + 1 >= len(tokens) or tokens[file + 1].token_type not in STRING_TYPES:
        return False
    end = name_end(tokens, table + 1)
    here = tokens[file]
    insert = [like(here, marks.INSERT, "INSERT"), like(here, marks.INTO, "INTO"), *tokens[table + 1 : end]]
    target = reader.attempt([*insert, like(here, marks.VALUES, "VALUES"), *_row(here)])
    if not isinstance(target, exp.Insert):
        return False
    tree = exp.LoadData(
        this=target.this, local=False, overwrite=False, inpath=exp.Literal.string(tokens[file + 1].text)
    )
    query = next((token for token in tokens[end:] if word(token) == "SELECT"), None)
    message = "a query in the SET of LOAD DATA is not understood"
    notes = () if query is None else (reader.diagnostic("opaque", "warning", message, query),)
    reader.add(tokens, tree, "parsed", *notes)
    return True


def written_to_file(reader: StatementReader, tokens: list[Token]) -> bool:
    """MySQL's ``SELECT … INTO OUTFILE 'file'``, in any place of the query: as Hive's INSERT OVERWRITE DIRECTORY."""
    at = next((i for i, t in enumerate(tokens[:-2]) if word(t) == "INTO" and word(tokens[i + 1]) in _TO_FILE), -1)
    if at < 0 or tokens[at + 2].token_type not in STRING_TYPES:
        return False
    query = reader.attempt(tokens[:at], simplify=True) if at + 3 == len(tokens) else None
    query = query or reader.attempt(simplified(tokens, reader.lex.name))
    if not isinstance(query, exp.Query):
        return False
    file = exp.Directory(this=exp.Literal.string(tokens[at + 2].text))
    reader.add(tokens, exp.Insert(this=file, expression=query, overwrite=True), "parsed")
    return True


_TO_FILE: Final = frozenset({"OUTFILE", "DUMPFILE"})


def _row(here: Token) -> list[Token]:
    return [
        like(here, marks.L_PAREN, "("),
        like(here, marks.NUMBER, "1"),
        like(here, marks.R_PAREN, ")"),
    ]


def renamed(reader: StatementReader, tokens: list[Token]) -> bool:
    """T-SQL's ``EXEC sp_rename 'schema.old', 'new' [, 'COLUMN']`` as an ALTER TABLE."""
    strings = [t for t in tokens if t.token_type in STRING_TYPES]
    if len(strings) < 2 or strings[1].text.strip() == "":
        return False
    kind = strings[2].text.upper() if len(strings) > 2 else "OBJECT"
    parts = reader.lex.tokenize(strings[0].text)
    here = strings[0]
    name = [like(here, t.token_type, t.text) for t in parts]
    new = like(strings[1], marks.IDENTIFIER, strings[1].text)
    if new.text.replace("_", "").isalnum():
        new = like(strings[1], marks.VAR, strings[1].text)
    alter = [like(here, marks.ALTER, "ALTER"), like(here, marks.TABLE, "TABLE")]
    rename = like(here, marks.VAR, "RENAME")
    to = like(here, marks.VAR, "TO")
    if kind == "COLUMN" and len(name) > 2:
        tree = reader.attempt([*alter, *name[:-2], rename, like(here, marks.COLUMN, "COLUMN"), name[-1], to, new])
    elif kind == "OBJECT":
        tree = reader.attempt([*alter, *name, rename, to, new])
    else:
        return False
    if tree is None:
        return False
    reader.add(tokens, tree, "parsed", head="rename")
    return True


def _declare(reader: StatementReader, tokens: list[Token]) -> bool:
    reader.add(tokens, None, "ignored")
    return True


def _alter(reader: StatementReader, tokens: list[Token]) -> bool:
    """``ALTER TABLE a EXCHANGE PARTITION (…) WITH TABLE b``, ``ALTER TABLE a APPEND FROM b``: rows of b come into a."""
    if _moved(reader, tokens):
        return True
    view = next((i for i, t in enumerate(tokens[1:10], 1) if word(t) == "VIEW"), -1)
    if view > 0:
        return _alter_view(reader, tokens, view)
    append = find_word(tokens, {"APPEND"}, 2)
    exchange = append if append > 0 else find_word(tokens, {"EXCHANGE"}, 2)
    table = find_word(tokens, {"FROM" if append > 0 else "TABLE"}, exchange + 1) if exchange > 0 else -1
    if table < 0:
        return False
    end = name_end(tokens, table + 1)
    return moved_rows(reader, tokens, tokens[2:exchange], tokens[table + 1 : end])


def _moved(reader: StatementReader, tokens: list[Token]) -> bool:
    """``ALTER TABLE a.t SET SCHEMA b``, ``ALTER SCHEMA b TRANSFER a.t``: as ``ALTER TABLE a.t RENAME TO b.t``."""
    words = [word(token) for token in tokens[:12]]
    if words[1:2] == ["SCHEMA"] and "TRANSFER" in words[3:4]:
        start = past(tokens, 4, ("OBJECT",))
        while start < len(tokens) and not tokens[start].text.strip(":"):
            start += 1
        name, schema = tokens[start:], tokens[2:3]
    elif "SET" in words and words[words.index("SET") + 1 : words.index("SET") + 2] == ["SCHEMA"]:
        at = words.index("SET")
        start = next((i for i, one in enumerate(words[1:at], 1) if one in ("TABLE", "VIEW")), 0) + 1
        start = past(tokens, past(tokens, start, ("IF", "EXISTS")), ("ONLY",))
        name, schema = tokens[start:at], tokens[at + 2 : at + 3]
    else:
        return False
    if start < 2 or not name or not schema:
        return False
    here = tokens[0]
    head = [like(here, marks.ALTER, "ALTER"), like(here, marks.TABLE, "TABLE")]
    to = [like(here, marks.VAR, "RENAME"), like(here, marks.VAR, "TO")]
    tree = reader.attempt([*head, *name, *to, *name[:-3], *schema, like(here, marks.DOT, "."), name[-1]])
    if tree is None:
        return False
    reader.add(tokens, tree, "parsed", head="rename")
    return True


def _alter_view(reader: StatementReader, tokens: list[Token], view: int) -> bool:
    """``ALTER … VIEW v … AS query`` with options between: as CREATE OR REPLACE VIEW."""
    end = name_end(tokens, view + 1)
    query = find_word(tokens, {"AS"}, end)
    if query < 0:
        return False
    here = tokens[0]
    head = [
        like(here, marks.CREATE, "CREATE"),
        like(here, marks.OR, "OR"),
        like(here, marks.REPLACE, "REPLACE"),
    ]
    tail = last_with(tokens, query)
    for stop in (len(tokens), tail):
        tree = reader.attempt([*head, *tokens[view:end], *tokens[query:stop]]) if stop > 0 else None
        if tree is not None:
            reader.add(tokens, tree, "parsed")
            return True
    return False


REWRITES: dict[str, Rewrite] = {
    "CREATE": create,
    "REPLACE": _replace_into,
    "RENAME": _rename,
    "UNLOAD": _unload,
    "EXPLAIN": _explained,
    "DECLARE": _declare,
    "ALTER": _alter,
    "DROP": _drop,
    "INSERT": _insert,
    "MERGE": _merge,
    "LOAD": _load,
}
