"""CREATE FUNCTION, PROCEDURE, TRIGGER, TASK, EVENT, PACKAGE: their bodies are read as statements of their own."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts import links, session, table_functions, table_types, triggers
from govtool.capture.sql.scripts.control import variables
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.scripts.session import PATH_MARK, SessionChange
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import STRING_TYPES, closing, find_word, like, split, word, word_set
from govtool.names import fold, join_name

_KINDS = frozenset({"FUNCTION", "PROCEDURE", "PROC", "TRIGGER", "TASK", "EVENT", "PACKAGE", "MACRO", "AGGREGATE"})
_OF_ONE_VALUE = frozenset({"FUNCTION", "MACRO", "AGGREGATE"})
_DECLARES_BEHIND_AS = frozenset({"oracle", "tsql", "fabric", "teradata", "exasol"})
"""Dialects in which statements and declarations of a function's body follow AS without a BEGIN."""
_ALWAYS_BLOCKS = frozenset({"oracle", "exasol"})
"""Dialects in which no function is one expression."""
_SQL_LANGUAGES = frozenset({"", "SQL", "PLPGSQL", "PLSQL", "TSQL", "SPL", "STORED"})
_BODY = frozenset({"BEGIN", "DECLARE"})
_NO_BODY = word_set("OWNER CALLER DEFINER SELF RESTRICT IDENTITY NOT NULL")
"""Words behind an AS or IS that is not that of the body."""
_SCHEMAS_OF_ALL = frozenset({"pg_catalog", "pg_temp", "information_schema"})
_END: Final = re.compile(r"\s*;\s*END\b", re.IGNORECASE)
_BEFORE_EVENTS = word_set("AFTER BEFORE OR OF FOR READS MODIFIES INSTEAD CONTAINS EACH")
"""Words behind which INSERT, UPDATE or DELETE is an event of a trigger, or a promise of a routine."""
_OTHERS = word_set("TABLE VIEW AS SCHEMA DATABASE INDEX STAGE STREAM PIPE EXTENSION SEQUENCE PARTITION")
"""Words by which a CREATE makes something else than a routine."""
_METHODS = word_set("MEMBER STATIC CONSTRUCTOR MAP ORDER OVERRIDING FINAL INSTANTIABLE NOT")
"""Words before a method in the body of one of Oracle's object types."""
_STATEMENTS = frozenset(
    {"SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "MERGE", "CALL", "COPY", "TRUNCATE", "EXECUTE", "SET", "IF"}
)


def create(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    """Read a CREATE; what is left of the piece is a statement of the routine's body."""
    kind_at = _kind(tokens)
    if kind_at < 0:
        return _rule_or_synonym(reader, tokens)
    if word(tokens[kind_at - 1]) == "AGGREGATE":  # BigQuery's AGGREGATE FUNCTION, which the parser does not know
        tokens, kind_at = [*tokens[: kind_at - 1], *tokens[kind_at:]], kind_at - 1
    if word(tokens[kind_at]) == "AGGREGATE" and _aggregate(reader, tokens, kind_at):
        return None
    if reader.lex.name != "postgres" or find_word(tokens, {"SET"}, kind_at + 2) < 0:
        return _routine(reader, tokens, kind_at)
    first = len(reader.statements)
    tokens, change = _without_settings(tokens, kind_at + 2)
    rest = _routine(reader, tokens, kind_at)
    if change is not None:
        reader.statements[first:] = [one._replace(within=change) for one in reader.statements[first:]]
        for one in reader.statements[first:]:
            if isinstance(one.tree, exp.Create):
                _qualify(one.tree.args.get("expression"), change)
    return rest


def _aggregate(reader: StatementReader, tokens: list[Token], at: int) -> bool:
    """Read PostgreSQL's ``CREATE AGGREGATE name (types) (SFUNC = f, FINALFUNC = g)``: a call is one of these functions.

    Returns:
        Whether it was read: as a function whose body calls them.
    """
    _, start = _name(tokens, at + 1, reader.lex.name)
    if reader.lex.name != "postgres" or start >= len(tokens) or tokens[start].token_type != marks.L_PAREN:
        return False
    end = closing(tokens, start)
    named = {}
    for item in split(tokens[end + 2 : -1]):
        if len(item) > 2 and item[1].token_type == marks.EQ:
            named[word(item[0])] = reader.text[item[2].start : item[-1].end + 1]
    if "SFUNC" not in named:
        return False
    types = split(tokens[start + 1 : end])
    body = f"{named['SFUNC']}(NULL{''.join(f', ${number}' for number in range(1, len(types) + 1))})"
    if "FINALFUNC" in named:
        body = f"{named['FINALFUNC']}({body})"
    heading = reader.text[tokens[at + 1].start : tokens[end].end + 1]
    tree = reader.attempt_text(f"CREATE FUNCTION {heading} AS $$ SELECT {body} $$")
    if tree is None:
        return False
    reader.add(tokens, tree, "parsed", head="create function")
    return True


def _qualify(body: object, change: SessionChange) -> None:
    """Give the tables of a function's query the schemas of its search path: a call reads them from elsewhere.

    The first that has the table counts (``Relations.table_name``); where the path names ``public``, or it may be any
    session's, that is a table without a schema as well.
    """
    schemas = [name for name in change.search_path if name not in _SCHEMAS_OF_ALL]
    if not isinstance(body, exp.Expr) or not schemas:
        return
    usual = [""] if "public" in change.search_path else []
    path = PATH_MARK.join([*schemas, *usual]) if len(schemas) + len(usual) > 1 else None
    own = {cte.alias for cte in body.find_all(exp.CTE)}
    for table in body.find_all(exp.Table):
        if table.args.get("db") is None and isinstance(table.this, exp.Identifier) and table.name not in own:
            table.set("db", exp.to_identifier(schemas[0], quoted=True))
            table.set("path", path)


def _without_settings(tokens: list[Token], start: int) -> tuple[list[Token], SessionChange | None]:
    """Take PostgreSQL's ``SET name = value, value`` from the head of a routine: the parser does not know it.

    Returns:
        What is left, and what the settings change in how names resolve within the routine.
    """
    left, change = tokens[:start], None
    at = start
    while at < len(tokens) and word(tokens[at]) != "BEGIN":
        if word(tokens[at]) != "SET" or at + 3 >= len(tokens):
            left.append(tokens[at])
            at += 1
            continue
        end = at + 4  # SET, name, TO or =, value
        while end + 1 < len(tokens) and tokens[end].token_type == marks.COMMA:
            end += 2
        if word(tokens[at + 2]) != "FROM":  # FROM CURRENT: as where the routine is made
            change = session.change(tokens[at:end], "postgres") or change
        at = end
    return [*left, *tokens[at:]], change


def _routine(reader: StatementReader, tokens: list[Token], kind_at: int) -> list[Token] | None:
    kind = word(tokens[kind_at])
    # Wrapped text is encoded: the routine may read and write anything.
    if reader.lex.name == "oracle" and find_word(tokens[: kind_at + 6], {"WRAPPED"}, kind_at + 2) > 0:
        note = reader.diagnostic("opaque", "warning", "a routine whose text is wrapped", tokens[0])
        reader.add(tokens, None, "opaque", note, head=f"create {kind.lower()}")
        return None
    if kind in ("PACKAGE", "TYPE"):
        return _package(reader, tokens, kind_at)
    name, after = _name(tokens, kind_at + 1, reader.lex.name)
    language = _language(tokens, after)
    if language not in _SQL_LANGUAGES:
        _foreign(reader, tokens, language)
        return None
    # RETURN NUMBER IS n NUMBER; is a head and a declaration, which the parser takes for RETURN and a condition.
    is_block = reader.lex.name in _ALWAYS_BLOCKS
    if kind in _OF_ONE_VALUE and not is_block and _expression_body(reader, tokens, after):
        return None
    body = _body(tokens, after, kind)
    if kind == "TRIGGER" and triggers.begin(reader, tokens, after, body, name) and body < 0:
        return None
    if body < 0:
        reader.statement(tokens)
        return None
    head = f"create {kind.lower()}"
    returns = find_word(tokens[:body], {"RETURNS"}, after) if kind == "FUNCTION" else -1
    signature = table_functions.signature(reader, tokens, returns, after, name) if kind == "FUNCTION" else None
    if tokens[body].token_type in STRING_TYPES:
        reader.add(tokens, signature, "ignored", head=head)
        if returns > 0 and returns + 1 < len(tokens) and word(tokens[returns + 1]) == "TRIGGER":
            triggers.row(reader, tokens, name)
        _quoted_body(reader, tokens[body], name)
        return None
    reader.add(tokens[:body], signature, "ignored", head=head)
    if _is_expression(reader, tokens[body], kind):
        _only(reader, tokens[body + 1 :], name)
        return None
    return _enter(reader, tokens, body, returns, name)


def _is_expression(reader: StatementReader, token: Token, kind: str) -> bool:
    """Return whether the body of a routine, which begins with this token, is one expression."""
    return kind in _OF_ONE_VALUE and reader.lex.name not in _DECLARES_BEHIND_AS and word(token) == "AS"


def _only(reader: StatementReader, rest: list[Token], name: str) -> None:
    """Read the expression of a function that could not be read as a whole: no other statement is of its body."""
    reader.routine = name
    if rest:
        reader.statement(rest)
    reader.routine = None


def _quoted_body(reader: StatementReader, token: Token, name: str | None) -> None:
    """Read the body that is in a string."""
    offset = reader.text.find(token.text[:40], token.start, token.end + 1)
    reader.body(token.text, token, offset if offset >= 0 else token.start, name)


def _enter(reader: StatementReader, tokens: list[Token], body: int, returns: int, name: str) -> list[Token] | None:
    """Begin the body of a routine, whose statements follow one by one; return the first."""
    tsql = reader.lex.name in ("tsql", "fabric")
    reader.routine = name
    if reader.lex.name in variables.TSQL:
        table_types.parameters(reader, tokens[:body], name)
    flow = reader.flow
    if returns > 0 and tsql:
        table_functions.begin(reader, tokens, returns, name)
    flow.inside = True
    flow.owner = not tsql
    first = word(tokens[body])
    if first in ("AS", "IS"):
        # Oracle declares variables between AS and BEGIN, without a word for it.
        flow.declarations = reader.lex.name == "oracle"
        return tokens[body + 1 :] or None
    rest = tokens[body:]
    if first not in ("BEGIN", "DECLARE", "IF") and not tsql:
        # A body of one statement: the routine ends with it.
        reader.statement(rest)
        reader.routine = None
        reader.flow = type(flow)()
        return None
    return rest


def _rule_or_synonym(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    """Read PostgreSQL's rules, and synonyms; anything else is left as it is."""
    at = -1
    for index, token in enumerate(tokens[1:6], 1):
        text = word(token)
        if text in ("TABLE", "VIEW", "AS"):
            return tokens
        if text in ("RULE", "SYNONYM"):
            at = index
            break
    if at < 0:
        return tokens
    if word(tokens[at]) == "SYNONYM":
        links.synonym(reader, tokens, at)
    else:
        triggers.rule(reader, tokens, _name(tokens, at + 1, reader.lex.name)[0])
    return None


def do_block(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    """Postgres' ``DO $$ … $$``; in other dialects DO is only a word of a loop."""
    for token in tokens[1:5]:
        if token.token_type in STRING_TYPES and len(token.text) > 8:
            language = _language(tokens, 1)
            if language not in _SQL_LANGUAGES:
                _foreign(reader, tokens, language)
                return None
            reader.add(tokens, None, "ignored", head="do")
            _quoted_body(reader, token, None)
            return None
    return tokens[1:] or None


def _kind(tokens: list[Token]) -> int:
    """Return the position of the kind of routine, or -1 if the statement creates something else."""
    for index, token in enumerate(tokens[1:10], 1):
        text = word(token)
        if text == "AGGREGATE" and index + 1 < len(tokens) and word(tokens[index + 1]) == "FUNCTION":
            continue
        if text in _KINDS or (text == "TYPE" and index + 1 < len(tokens) and word(tokens[index + 1]) == "BODY"):
            return index
        if text in _OTHERS:
            if text == "TABLE" and index + 1 < len(tokens) and word(tokens[index + 1]) == "FUNCTION":
                continue
            return -1
    return -1


def _name(tokens: list[Token], start: int, dialect: str) -> tuple[str, int]:
    while start < len(tokens) and word(tokens[start]) in ("IF", "NOT", "EXISTS", "BODY"):
        start += 1
    parts: list[str] = []
    while start < len(tokens):
        token = tokens[start]
        if token.token_type == marks.IDENTIFIER and dialect == "bigquery" and "." in token.text:
            parts.extend(fold(p, quoted=True, dialect=dialect, table=True) for p in token.text.split("."))
        else:
            parts.append(fold(token.text, quoted=token.token_type == marks.IDENTIFIER, dialect=dialect, table=True))
        start += 1
        if start + 1 < len(tokens) and tokens[start].token_type == marks.DOT:
            start += 1
            continue
        break
    return join_name(parts), start


def _language(tokens: list[Token], start: int) -> str:
    """The language that the routine is written in, upper case; empty if none is named."""
    for index in range(start, len(tokens) - 1):
        text = word(tokens[index])
        follows = tokens[index - 1].token_type not in (marks.DOT, marks.COMMA, marks.PARAMETER)
        if text == "EXTERNAL" and word(tokens[index - 1]) == "AS" and word(tokens[index + 1]) == "NAME":
            return "CLR"
        if text == "LANGUAGE" and follows and tokens[index + 1].text.replace("_", "").isalnum():
            return tokens[index + 1].text.upper()
        if text in ("BEGIN", "SELECT") or (text == "DECLARE" and index > start):
            break
    return ""


def _body(tokens: list[Token], start: int, kind: str) -> int:
    """Return the start of the body: a string, BEGIN, DECLARE, or the word after AS; -1 if there is none."""
    if start < len(tokens) and tokens[start].token_type == marks.L_PAREN:
        start = closing(tokens, start) + 1
    depth = 0
    for index in range(start, len(tokens)):
        token = tokens[index]
        if token.token_type == marks.L_PAREN:
            depth += 1
        elif token.token_type == marks.R_PAREN:
            depth -= 1
        elif depth == 0:
            # Within parentheses are defaults and types: no body begins there.
            text = word(token)
            body = -1
            if text in ("AS", "IS"):
                body = _behind_as(tokens, index, kind)
            elif text == "BEGIN" or (text == "DO" and kind == "EVENT") or (text == "DECLARE" and kind == "TRIGGER"):
                body = index + (text == "DO")
            elif token.token_type == marks.HEREDOC_STRING or (
                kind in ("PROCEDURE", "PROC", "TRIGGER") and _is_first_statement(tokens, index)
            ):
                body = index
            if body >= 0:
                return body
    return -1


def _behind_as(tokens: list[Token], index: int, kind: str) -> int:
    """Return the start of the body behind an AS or IS; -1 if the word is of something else."""
    previous = word(tokens[index - 1])
    if word(tokens[index]) == "AS":
        if previous in ("EXECUTE", "EXEC") or tokens[index - 2].token_type == marks.PARAMETER:
            return -1  # EXECUTE AS OWNER, and T-SQL's parameters: @a AS int
        if kind == "TRIGGER" and previous in ("NEW", "OLD", "ROW", "TABLE"):
            return -1  # REFERENCING NEW AS n
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    if following is None:
        return index
    if following.token_type in STRING_TYPES:
        return index + 1
    if word(following) in _NO_BODY:
        return -1
    return index + 1 if word(following) in _BODY | _STATEMENTS else index


def _is_first_statement(tokens: list[Token], index: int) -> bool:
    """Return whether a body of one statement begins here, without any word in front of it."""
    text = word(tokens[index])
    if text not in _STATEMENTS or text in ("SET", "EXECUTE", "IF", "WITH"):
        return False
    before = tokens[index - 1]
    return before.token_type != marks.COMMA and word(before) not in _BEFORE_EVENTS


def _expression_body(reader: StatementReader, tokens: list[Token], start: int) -> bool:
    """Read a SQL function whose body is one expression or query, so that calls of it can be inlined."""
    begin = find_word(tokens, {"BEGIN"}, start)
    if begin >= 0:
        return _atomic_body(reader, tokens, begin)
    tree = reader.attempt(tokens) or table_functions.set_returning(reader, tokens, start)
    if not isinstance(tree, exp.Create):
        return False
    body = tree.args.get("expression")
    if (
        isinstance(body, exp.Heredoc)
        or (isinstance(body, exp.Literal) and body.is_string)
        or isinstance(body, exp.RawString)
    ):
        inner = _single(reader, str(body.this))
        if inner is None:
            return False
        tree.set("expression", inner)
    elif body is None or isinstance(body, exp.Block):
        return False
    reader.add(tokens, tree, "parsed", head="create function")
    return True


def _atomic_body(reader: StatementReader, tokens: list[Token], begin: int) -> bool:
    """PostgreSQL's ``BEGIN ATOMIC query; END``: the query is what the function returns."""
    if begin + 2 >= len(tokens) or word(tokens[begin + 1]) != "ATOMIC":
        return False
    here, rest = tokens[begin], tokens[begin + 2 :]
    if not _END.match(reader.text, tokens[-1].end + 1):
        message = "a function of several statements: where it is called is not followed"
        reader.add(tokens[:1], None, "opaque", reader.diagnostic("opaque", "warning", message, here), head="function")
        return False
    tree = reader.attempt([*tokens[:begin], like(here, marks.ALIAS, "AS"), like(here, marks.STRING, "")])
    query = reader.attempt(rest)
    if not isinstance(tree, exp.Create) or not isinstance(query, exp.Query):
        return False
    tree.set("expression", query)
    reader.add(tokens, tree, "parsed", head="create function")
    return True


def _single(reader: StatementReader, text: str) -> exp.Expr | None:
    """The tree of a text that is one query or expression; None for anything else."""
    try:
        tokens = table_functions.only_query(reader.lex.tokenize(text))
        while tokens and tokens[-1].token_type == marks.SEMICOLON:
            tokens.pop()
        if not tokens or any(t.token_type == marks.SEMICOLON for t in tokens) or word(tokens[0]) in _BODY:
            return None
        tree = reader.lex.parse(tokens, text)
    except Exception:
        return None
    if isinstance(tree, (exp.DML, exp.DDL, exp.Command, exp.Merge)) and not isinstance(tree, exp.Query):
        return None
    return tree


def _package(reader: StatementReader, tokens: list[Token], kind_at: int) -> list[Token] | None:
    """An Oracle package, or the methods of an object type: its routines are read as those of the package."""
    name, after = _name(tokens, kind_at + 1, reader.lex.name)
    index = find_word(tokens, {"AS", "IS"}, after)
    reader.add(
        tokens[: index + 1] if index > 0 else tokens, None, "ignored", head=f"create {word(tokens[kind_at]).lower()}"
    )
    if index < 0:
        return None
    reader.routine = name
    reader.flow.inside = True
    reader.flow.package = True
    reader.flow.declarations = True
    return tokens[index + 1 :] or None


def method(tokens: list[Token]) -> int:
    """Return the position of PROCEDURE or FUNCTION in a declaration; -1 if it declares something else."""
    for index, token in enumerate(tokens):
        text = word(token)
        if text in ("PROCEDURE", "FUNCTION"):
            return index
        if text not in _METHODS:
            break
    return -1


def nested(reader: StatementReader, tokens: list[Token], at: int) -> list[Token]:
    """Read the head of a routine that a block, a package or an object type declares; what is left is in its body.

    Its parameters are variables until its end.
    """
    head = tokens[at:]
    body = find_word(head, {"IS", "AS"}, 1)
    if body > 1 and word(head[body - 1]) == "SELF":  # a constructor returns itself
        body = find_word(head, {"IS", "AS"}, body + 1)
    if body < 0 or (body + 1 < len(head) and word(head[body + 1]) in ("LANGUAGE", "EXTERNAL", "MLE")):
        reader.add(tokens, None, "ignored", head="declare")
        return []
    items: list[list[Token]] = []
    if len(head) > 2 and head[2].token_type == marks.L_PAREN:
        items = split(head[3 : closing(head, 2)])
    targets = [t for t in [variables.target_of(item[:1], reader.lex.name) for item in items] if t.name]
    tree = variables.tree_of(targets) if targets else None
    reader.add(tokens[: at + body], tree, "ignored", head=f"create {word(head[0]).lower()}")
    reader.flow.nested.append((reader.flow.depth, [target.name for target in targets]))
    return head[body + 1 :]


def _foreign(reader: StatementReader, tokens: list[Token], language: str) -> None:
    """A body in another language. Calls of a function depend on their arguments; a procedure may do anything."""
    message = f"a routine in {language.lower()[:40]}: only SQL bodies are read"
    tree = reader.attempt(tokens)
    if tree is None:
        function = any(word(token) == "FUNCTION" for token in tokens[1:4])
    else:
        function = isinstance(tree, exp.Create) and str(tree.args.get("kind")).upper() == "FUNCTION"
    if function and not _reads_tables(reader, tokens, language):
        status, severity = "parsed" if tree is not None else "ignored", "info"
    else:
        status, severity = "opaque", "warning"
    reader.add(tokens, tree, status, reader.diagnostic("opaque", severity, message, tokens[0]), head="create function")


def _reads_tables(reader: StatementReader, tokens: list[Token], language: str) -> bool:
    """Return whether a function in another language may run SQL: in PostgreSQL's (``plpython3u``, ``plperl`` …) it may,
    unless it is declared IMMUTABLE. Redshift's Python functions, C functions and those of other systems only compute.
    """
    if not language.startswith("PL") or reader.lex.name == "redshift":
        return False
    return not any(word(token) == "IMMUTABLE" for token in tokens)
