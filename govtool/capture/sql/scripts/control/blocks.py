"""Control flow and routine bodies, flattened to the statements in them.

A piece between two semicolons may begin with any amount of control flow (``ELSE BEGIN IF x THEN INSERT …``).
``flatten`` strips it word by word (``control_words``) and hands the statement behind it to the reader. Conditions are
dropped: they decide whether a statement runs, not what it writes. Which arm of which branch a statement stands in is
kept (``branches``).
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts import routines, table_functions
from govtool.capture.sql.scripts.control import (
    bindings,
    dynamic,
    early_exits,
    folding,
    row_counts,
    strings,
    variable_statements,
    variables,
)
from govtool.capture.sql.scripts.control.control_words import (
    MODIFYING,
    STRIPPERS,
    cursor_of,
    has_query,
    read_queries,
    read_query,
)
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.scripts.rewrites import outputs
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import STRING_TYPES, closing, find_word, name_end, word, word_set

_CONTROL = frozenset({"IF", "ELSE", "WHILE", "BEGIN", "END"})
_LOOPS = frozenset({"LOOP", "WHILE", "REPEAT", "FOR"})
_CHANGING = frozenset({"GET", "GET_DIAGNOSTICS", "UNSET"})
"""First words of statements that change variables to what is not followed."""
_EVALUATES = frozenset({"ASSERT", "RAISE"})
"""First words of statements that only look at values, which queries in them may bring."""
_RUN = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "WITH"})
"""What an EXPLAIN ANALYZE may change data by."""
_NO_ASSIGNMENT = frozenset({"SET", "UPDATE", "INSERT", "MERGE", "DELETE", "ALTER", "COPY"})

IGNORED = word_set(
    """COMMIT ROLLBACK SAVEPOINT RELEASE GRANT REVOKE DENY PRINT RAISE RAISERROR THROW SIGNAL RESIGNAL LEAVE ITERATE
    BREAK CONTINUE EXIT GOTO NULL FETCH CLOSE DEALLOCATE WAITFOR VACUUM ANALYZE ANALYSE OPTIMIZE SHOW DESCRIBE
    DESC HELP LOCK UNLOCK LISTEN NOTIFY UNLISTEN DISCARD RESET REINDEX CLUSTER CHECKPOINT KILL FLUSH SYSTEM MSCK
    REPAIR CACHE UNCACHE INVALIDATE ADD LIST PUT GET REMOVE RM LS UNSET SIGN ATTACH DETACH INSTALL START STOP
    PAUSE RESUME SUSPEND AUDIT NOAUDIT PURGE FLASHBACK BACKUP RESTORE DBCC COLLECT SAVE USE COMMENT SECURITY
    REASSIGN DELIMITER EXPLAIN PRAGMA HANDLER XA STATISTICS VACUUM GENERATE ZORDER ASSERT GET_DIAGNOSTICS UNDROP
    BUILD CANCEL RECOVER SUBMIT ADMIN CHECKSUM ABORT END PIPE"""
) | {"UPDATE STATISTICS"}
"""First words of statements that no value flows through."""


def ignored(head: str) -> bool:
    """Return whether a statement with this first token (upper case) carries no lineage."""
    return head in IGNORED or (" " in head and head.partition(" ")[0] in IGNORED)


def flatten(reader: StatementReader, tokens: list[Token]) -> None:
    """Strip the control flow from one piece, and read the statement behind it."""
    if reader.flow.returns[0]:
        tokens = table_functions.renamed(tokens, *reader.flow.returns)
    while tokens:
        head = word(tokens[0])
        reader.flow.branches.follows(head)
        if head in early_exits.EXITS:
            early_exits.exited(reader, tokens)
        rest = _strip(reader, tokens)
        if rest is tokens:
            _statement(reader, tokens)
        if rest is tokens or (rest is None and head not in _CONTROL):
            reader.flow.branches.passed()
        if rest is None or rest is tokens:
            return
        tokens = rest


def _strip(reader: StatementReader, tokens: list[Token]) -> list[Token] | None:
    """Return the rest after one control word; the same list if none leads; None if all is consumed."""
    head = word(tokens[0])
    strip = STRIPPERS.get(head)
    if strip is not None:
        return strip(reader, tokens)
    if len(tokens) > 1 and tokens[0].text == "<" and tokens[1].text == "<":
        return _after_label(reader, tokens)
    if len(tokens) > 2 and tokens[1].token_type == marks.COLON and word(tokens[2]) in {"BEGIN", *_LOOPS}:
        _note_label(reader, tokens[0], tokens[2])
        return tokens[2:]
    return tokens


def _after_label(reader: StatementReader, tokens: list[Token]) -> list[Token]:
    for index in range(2, min(len(tokens) - 1, 8)):
        if tokens[index].text == ">" and tokens[index + 1].text == ">":
            if index + 2 < len(tokens):
                _note_label(reader, tokens[2], tokens[index + 2])
            return tokens[index + 2 :]
    return tokens


def _note_label(reader: StatementReader, label: Token, behind: Token) -> None:
    if word(behind) in _LOOPS:
        reader.flow.branches.loops.add(label.text.lower())


def _statement(reader: StatementReader, tokens: list[Token]) -> None:
    """A piece without control flow in front."""
    flow = reader.flow
    head = word(tokens[0])
    if flow.declarations:
        _declaration(reader, tokens)
        return
    tokens = strings.with_names(reader, tokens)
    if dynamic.read(reader, tokens, head):
        return
    if head in ("SELECT", "WITH"):
        _read_query(reader, tokens, head)
        return
    if head == "FETCH" and variable_statements.fetched(reader, tokens):
        return
    if ignored(head) and not (head == "CACHE" and has_query(tokens)):
        run = _run_by_explain(reader, tokens) if head == "EXPLAIN" else []
        if run:
            _statement(reader, run)
            return
        if head in _CHANGING:
            reader.flow.strings.clear()
            if head == "GET" and row_counts.diagnosed(reader, tokens):
                return
        elif head in _EVALUATES:
            read_queries(reader, tokens)
        reader.add(tokens, None, "ignored")
        return
    if _assigns(reader, tokens, head):
        return
    # The text of what fills a table function's variable does not show what is returned.
    tree = reader.attempt(tokens, simplify=True) if flow.returns[0] else None
    if tree is None:
        reader.statement(tokens)
    else:
        reader.add(tokens, tree, "parsed")


def _run_by_explain(reader: StatementReader, tokens: list[Token]) -> list[Token]:
    """Return the statement that EXPLAIN ANALYZE runs, if it may change data (PostgreSQL: "EXPLAIN")."""
    if reader.lex.name not in variables.PLPGSQL or len(tokens) < 3:
        return []
    end = closing(tokens, 1) + 1 if tokens[1].token_type == marks.L_PAREN else 3
    options = {word(token) for token in tokens[1:end]}
    start = next((i for i, token in enumerate(tokens[: end + 2]) if i and word(token) in _RUN), -1)
    return tokens[start:] if start > 0 and options & {"ANALYZE", "ANALYSE"} else []


def _read_query(reader: StatementReader, tokens: list[Token], head: str) -> None:
    changes = head == "WITH" and reader.lex.name in variables.TSQL and outputs.changed(reader, tokens)
    if not changes and not variable_statements.selected(reader, tokens):
        reader.statement(tokens)


def _assigns(reader: StatementReader, tokens: list[Token], head: str) -> bool:
    """Read SET, LET, ``name := value``, and changes of rows that variables keep; False if nothing is assigned."""
    name = reader.lex.name
    if (head == "SET" and variable_statements.set_(reader, tokens)) or (head == "LET" and _let(reader, tokens)):
        return True
    if reader.flow.inside or name in ("snowflake", "oracle"):
        assigned = None if head in _NO_ASSIGNMENT else _assignment(tokens)
        if assigned is None and name in variables.PLPGSQL:
            assigned = _equated(tokens)
        if assigned is not None:
            _assigned(reader, tokens, tokens[: assigned - 1], assigned)
            return True
        if head in MODIFYING and variable_statements.returned(reader, tokens):
            return True
    return head in MODIFYING and name in variables.TSQL and outputs.changed(reader, tokens)


def _let(reader: StatementReader, tokens: list[Token]) -> bool:
    """Snowflake's ``LET v [type] := value``, ``LET c CURSOR FOR query``, ``LET r RESULTSET := (query)``."""
    cursor = find_word(tokens, {"CURSOR"}, 2)
    if cursor > 0:
        cursor_of(reader, tokens, variables.targets_of(tokens[1:2], reader.lex.name), tokens[cursor + 1 :])
        return True
    assigned = _assignment(tokens)
    if assigned is None:
        assigned = 1 + find_word(tokens, {"DEFAULT"}, 2)
    if assigned < 2:
        return False
    _assigned(reader, tokens, tokens[1:2], assigned)
    strings.declared(reader, [tokens[1].text.lower()])
    return True


def _assignment(tokens: list[Token]) -> int | None:
    """Return the start of the value of ``name := value``."""
    for index in range(1, min(len(tokens), 12)):
        if tokens[index].token_type == marks.COLON_EQ:
            named = [token.token_type in STRING_TYPES for token in tokens[1:index]]
            return None if True in named else index + 1
    return None


def _equated(tokens: list[Token]) -> int | None:
    """Return the start of the value of ``name = value``, ``record.field = value`` and ``array[1] = value``."""
    at = name_end(tokens, 0)
    if at < len(tokens) and tokens[at].token_type == marks.L_BRACKET:
        at = next((i + 1 for i, t in enumerate(tokens[at:], at) if t.token_type == marks.R_BRACKET), at)
    equals = at < len(tokens) - 1 and tokens[at].token_type == marks.EQ
    return at + 1 if equals and tokens[0].token_type not in STRING_TYPES else None


def _assigned(reader: StatementReader, tokens: list[Token], left: list[Token], start: int) -> None:
    targets = variables.targets_of(left, reader.lex.name)
    value = tokens[start:]
    if not value or not targets or not targets[0].name:
        reader.add(tokens, None, "ignored", head="assignment")
        return
    inner = value[1 : closing(value, 0)] if value[0].token_type == marks.L_PAREN else value
    if inner and word(inner[0]) == "EXECUTE":  # a result set of dynamic SQL
        bindings.assign_dynamic(reader, tokens, targets, inner)
        flatten(reader, inner)
        return
    if has_query(value) and not variables.is_query(value):
        read_query(reader, value)
    variables.assign_tokens(reader, tokens, targets, value, shown=True, head="assignment")


def _declaration(reader: StatementReader, tokens: list[Token]) -> None:
    """``name type [:= value]`` or ``name CURSOR FOR query`` of a declaration section, or a routine of a package."""
    head = word(tokens[0])
    method = routines.method(tokens)
    if method >= 0:
        flatten(reader, routines.nested(reader, tokens, method))
        return
    cursor = find_word(tokens, {"CURSOR"})
    if cursor >= 0:
        name = tokens[1:2] if cursor == 0 else tokens[:1]  # Oracle writes CURSOR first
        targets = variables.targets_of(name, reader.lex.name)
        cursor_of(reader, tokens, targets, tokens[cursor + 1 :])
        variables.declared(reader, targets)
        return
    if head in ("TYPE", "SUBTYPE", "PRAGMA"):
        reader.add(tokens, None, "ignored", head="declare")
        return
    targets = variables.targets_of(tokens[:1], reader.lex.name)
    start = _assignment(tokens) or 1 + find_word(tokens, {"DEFAULT"}, 1)
    if start < 2:
        start = 1 + next((i for i, t in enumerate(tokens[1:12], 1) if t.token_type == marks.EQ), -1)
    if start > 1 and start < len(tokens):
        parts = folding.constant_parts(tokens[start:], strings.known(reader))
        constant = any(word(token) == "CONSTANT" for token in tokens[1:3])
        if parts and (constant or strings.never_set_again(reader.text, tokens[0].text)):
            reader.flow.constants[tokens[0].text.lower()] = parts
        _assigned(reader, tokens, tokens[:1], start)
        variables.declared(reader, targets)
    else:
        variables.declare(reader, tokens, targets)
