"""Second chances for statements that the parser does not understand, where a part of them carries lineage.

Each rescue rewrites tokens, never text, so that places stay true. A ``dropped`` diagnostic names what is left out; what
cannot be rescued is ``opaque`` (a statement, of which nothing more is known) or ``failed``.
"""

from __future__ import annotations

from difflib import get_close_matches

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.clauses.table import simplified, unread
from govtool.capture.sql.scripts.control.blocks import ignored
from govtool.capture.sql.scripts.control.variables import MYSQL, TSQL
from govtool.capture.sql.scripts.links import attached
from govtool.capture.sql.scripts.needs import add_ruling_columns, needed
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.scripts.rewrites.statements import REWRITES, written_to_file
from govtool.capture.sql.scripts.rewrites.tools import QUERY_WORDS, dropped
from govtool.capture.sql.scripts.rewrites.tsql import rewritten
from govtool.capture.sql.scripts.source_positions import error_token
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import NestingError, word, word_set
from govtool.model.diagnostic import Diagnostic

_RELATIONS = frozenset({"TABLE", "VIEW"})
_HARMLESS_CREATE = word_set(
    """DATABASE SCHEMA ROLE USER INDEX EXTENSION SEQUENCE TYPE DOMAIN WAREHOUSE STAGE FORMAT INTEGRATION CATALOG
    CONNECTION LOGIN GROUP POLICY PUBLICATION SUBSCRIPTION SERVER MAPPING TABLESPACE OPERATOR CAST COLLATION
    CONVERSION LANGUAGE RULE STATISTICS SYNONYM RESERVATION CAPACITY ASSIGNMENT SECRET SHARE RECIPIENT VOLUME
    CREDENTIAL NOTIFICATION NETWORK RESOURCE MONITOR TAG DIRECTORY PROFILE AGGREGATE DICTIONARY QUOTA CONSTRAINT
    PARTITION PROCEDURE FUNCTION SEARCH VECTOR DIMENSION TEXT METHOD WRAPPER TRANSFORM ASSEMBLY QUEUE CONTRACT MESSAGE
    ENDPOINT CERTIFICATE KEY SCHEME DEFAULT XML APPLICATION STREAMLIT NOTEBOOK REPOSITORY POOL SERVICE CONTEXT SPFILE
    PFILE CONTROLFILE DISKGROUP LIBRARY OUTLINE RESTORE EDITION JAVA INDEXTYPE CLUSTER LOCKDOWN AUDIT ROUTE BROKER
    SESSION WORKLOAD LISTING MODEL HANDLER COLLECTION ENCRYPTION BOOKMARK ROLLBACK LOGFILE"""
)
_HARMLESS_ALTER = word_set(
    """SESSION SYSTEM USER ROLE DATABASE SCHEMA WAREHOUSE INDEX SEQUENCE FUNCTION PROCEDURE TYPE DOMAIN DEFAULT
    EXTENSION TASK PIPE POLICY STAGE INTEGRATION LOGIN AUTHORIZATION SERVER TRIGGER RESERVATION CAPACITY
    ORGANIZATION PROJECT BI PUBLICATION SUBSCRIPTION GROUP ACCOUNT SHARE ALERT STREAM TABLESPACE PARTITION SYNONYM
    PACKAGE AGGREGATE COLLATION LARGE RULE TEXT STATISTICS EVENT VOLUME CATALOG CONNECTION EXTERNAL"""
)
_CUT = word_set("SELECT WITH INSERT CREATE MERGE UPDATE DELETE COPY UNLOAD FROM ALTER")
"""First words of statements whose end may be left out."""
_RULE_VERBS = ("ADD", "DROP", "DROP ALL", "SET", "UNSET")
_ACCESS_RULES = ("ROW ACCESS POLICY", "ROW ACCESS POLICIES", "ROW FILTER", "MASKING POLICY", "MASK")
_ROW_RULE = "a row access policy: the tables and columns by which it decides on rows are not followed"
_LINEAGE_ALTER = frozenset({"ADD", "DROP", "RENAME", "SWAP", "EXCHANGE", "CHANGE", "REPLACE", "AS"})


def failed(reader: StatementReader, tokens: list[Token], error: Exception) -> None:
    """A statement that does not parse: rescue it, or report it."""
    head = word(tokens[0])
    if not isinstance(error, (RecursionError, MemoryError, NestingError)):
        if needed(reader, tokens):
            return
        if (reader.lex.name in MYSQL and written_to_file(reader, tokens)) or _without_clauses(reader, tokens):
            return
        if _rewritten(reader, tokens):
            return
        if _with_long_numbers(reader, tokens) or _without_tail(reader, tokens, error):
            return
        if ignored(head):
            reader.add(tokens, None, "ignored")
            return
        if _access_rule(reader, tokens):
            return
        if tokens[0].token_type in reader.lex.commands:
            command(reader, tokens)
            return
        if reader.lex.name == "oracle" and _procedural(reader, tokens):
            return
    reader.add(tokens, None, "failed", reader.parse_error(error, tokens))


def command(reader: StatementReader, tokens: list[Token]) -> None:
    """A statement that sqlglot keeps as text."""
    head = word(tokens[0])
    if attached(reader, tokens) or needed(reader, tokens):
        return
    if _without_clauses(reader, tokens) or _rewritten(reader, tokens) or _access_rule(reader, tokens):
        return
    words = [word(t) for t in tokens[1:8]]
    queries = any(w in QUERY_WORDS for w in _words(tokens))
    if not queries or ignored(head) or head in ("SET", "RESET", "REFRESH", "USE"):
        _without_query(reader, head, tokens, words)
        return
    if _is_harmless(head, tokens):
        reader.add(tokens, None, "ignored")
    elif head == "CREATE" and _RELATIONS.intersection(words[:4]) and not _of_no_rows(words):
        _broken_create(reader, tokens)
    else:
        _opaque(reader, tokens, f"{printable_head(tokens)} is not understood{_nearest_words(tokens)}")


def _without_query(reader: StatementReader, head: str, tokens: list[Token], words: list[str]) -> None:
    """A statement without a word that reads or writes rows: only what defines a relation matters."""
    if head == "CREATE" and any(w in _RELATIONS for w in words) and not _of_no_rows(words):
        _broken_create(reader, tokens)
    elif head == "CREATE" and not (_of_no_rows(words) or any(word(t) in _HARMLESS_CREATE for t in tokens[1:6])):
        _opaque(reader, tokens, f"{printable_head(tokens)} is not understood{_nearest_words(tokens)}")
    elif head == "ALTER" and not _harmless_alter(tokens):
        _opaque(reader, tokens, "an ALTER that is not understood")
    else:
        reader.add(tokens, None, "ignored")


def _is_harmless(head: str, tokens: list[Token]) -> bool:
    """Return whether a CREATE or ALTER is of something without rows."""
    if head == "CREATE":
        return any(word(t) in _HARMLESS_CREATE for t in tokens[1:5]) and "SELECT" not in _words(tokens)
    return head == "ALTER" and _harmless_alter(tokens) and "SELECT" not in _words(tokens)


def _procedural(reader: StatementReader, tokens: list[Token]) -> bool:
    """A call or an assignment of PL/SQL in a form that is not SQL (``a.b(1)(2).c(d)``, ``a(i)(j).b := c``)."""
    inside = reader.flow.inside or reader.routine is not None
    if not inside or tokens[0].token_type not in (marks.VAR, marks.IDENTIFIER, marks.COLON):
        return False
    if any(word(t) in QUERY_WORDS - {"SET"} for t in tokens):
        return False
    if any(t.token_type == marks.COLON_EQ for t in tokens):
        _opaque(reader, tokens, "an assignment that is not understood")
        return True
    if len(tokens) < 3 or not any(t.token_type == marks.L_PAREN for t in tokens):
        return False
    message = "calls a routine or a method: what it writes is read where it is defined"
    reader.add(tokens, None, "ignored", reader.diagnostic("opaque", "info", message, tokens[0]), head="call")
    return True


def _nearest_words(tokens: list[Token]) -> str:
    """``: VEIW may be meant as VIEW``, if a CREATE names something that is nearly the word of a relation."""
    if word(tokens[0]) != "CREATE":
        return ""
    for token in tokens[1:6]:
        if word(token) in _RELATIONS:
            return ""
        near = get_close_matches(word(token), sorted(_RELATIONS), 1, 0.7)
        if near:
            return f": {word(token)} may be meant as {near[0]}"
    return ""


def printable_head(tokens: list[Token]) -> str:
    """The first words of a statement, for a message."""
    return " ".join(w for w in (word(t) for t in tokens[:2]) if w.replace("_", "").isalnum())[:60] or "a statement"


def _of_no_rows(words: list[str]) -> bool:
    """Return whether a CREATE makes Oracle's ``TYPE t AS TABLE OF …`` or ``MATERIALIZED VIEW LOG``."""
    return "TYPE" in words[:3] or ("LOG" in words[:3] and "MATERIALIZED" in words[:1])


def _words(tokens: list[Token]) -> set[str]:
    return {word(t) for t in tokens}


def _broken_create(reader: StatementReader, tokens: list[Token]) -> None:
    """Add a CREATE whose query does not parse, with the place in the query where the parser gave up."""
    message = "a CREATE that is not understood"
    start = next((i for i, t in enumerate(tokens) if i > 1 and word(t) == "AS"), -1) + 1
    query = tokens[start:] if start else []
    note = reader.diagnostic("opaque", "warning", message, tokens[0])
    if query:
        try:
            reader.lex.parse(query, reader.text)
        except Exception as error:
            found = reader.parse_error(error, query)
            text = f"{message}: {found.message}"
            note = Diagnostic("opaque", "warning", text, found.file, found.line, found.column)
    reader.add(tokens, None, "opaque", note)


def _opaque(reader: StatementReader, tokens: list[Token], message: str) -> None:
    reader.add(tokens, None, "opaque", reader.diagnostic("opaque", "warning", message, tokens[0]))


def _harmless_alter(tokens: list[Token]) -> bool:
    kind = word(tokens[1]) if len(tokens) > 1 else ""
    if kind in _HARMLESS_ALTER and kind != "EXTERNAL":
        return True
    telling = _LINEAGE_ALTER - {"AS"} if "MODIFY" in [word(t) for t in tokens[3:7]] else _LINEAGE_ALTER
    return not any(word(t) in telling for t in tokens[2:12]) or {"PARTITION"} <= {word(t) for t in tokens[3:9]}


def _access_rule(reader: StatementReader, tokens: list[Token]) -> bool:
    """Add a statement about who may see rows or values; a row rule that reads relations or columns is opaque."""
    if _rules_access(tokens):
        reader.add(tokens, None, "ignored")
        return True
    phrase = " ".join(word(t) for t in tokens[:16])
    created = phrase.startswith(("CREATE ROW ACCESS POLICY", "CREATE OR REPLACE ROW ACCESS POLICY"))
    if created or (phrase.startswith("ALTER ") and "ROW ACCESS POLICY" in phrase):
        _opaque(reader, tokens, _ROW_RULE)
        add_ruling_columns(reader, tokens)
        return True
    if phrase.startswith("ALTER ") and any(f" {rule}" in phrase for rule in _ACCESS_RULES):
        reader.add(tokens, None, "ignored")
        add_ruling_columns(reader, tokens)
        return True
    return False


def _rules_access(tokens: list[Token]) -> bool:
    """Return whether a statement only declares who may see rows or values; ``capture.sql.access_rules`` reads it."""
    words = [word(t) for t in tokens]
    if words[0] == "CREATE":
        rule = "POLICY" in words[1:7] and ("ACCESS" in words[1:6] or "MASKING" in words[1:6])
        return rule and not any(each in QUERY_WORDS for each in words)  # one with a query reads other relations
    if words[0] != "ALTER" or "ON" in words or "USING" in words:  # these name columns, which cannot be dropped then
        return False
    phrase = " ".join(words)
    return any(f" {verb} {rule}" in phrase for verb in _RULE_VERBS for rule in _ACCESS_RULES)


# -- leaving out ---------------------------------------------------------------------------------------------------


def _without_clauses(reader: StatementReader, tokens: list[Token]) -> bool:
    """Read a statement without clauses that carry no lineage; rewritten, if it still does not parse."""
    shorter = simplified(tokens, reader.lex.name)
    if shorter is tokens or not shorter:
        return False
    if shorter[0].token_type == marks.INSERT and reader.constants(shorter):
        return True
    tree = reader.attempt(shorter)
    if tree is not None and not isinstance(tree, (exp.Alias, exp.Column)):
        left_out = unread(tokens, reader.lex.name)
        if left_out:
            dropped(reader, tokens, tree, left_out)
        else:
            reader.add(tokens, tree, "parsed")
        add_ruling_columns(reader, tokens)
        return True
    return _rewritten(reader, shorter)


def _rewritten(reader: StatementReader, tokens: list[Token]) -> bool:
    """Add a statement in a form that parses, if there is one: of its dialect, or of any."""
    if reader.lex.name in TSQL and rewritten(reader, tokens):
        return True
    rewrite = REWRITES.get(word(tokens[0]))
    return rewrite is not None and rewrite(reader, tokens)


def _without_tail(reader: StatementReader, tokens: list[Token], error: Exception) -> bool:
    """Parse up to the token that the parser stopped at, if nothing behind it reads or writes a relation."""
    stop = error_token(error, tokens)
    index = next((i for i, t in enumerate(tokens) if t is stop), 0)
    for cut in (index, index - 1):
        if cut < 4 or any(word(t) in QUERY_WORDS for t in tokens[cut:]) or not _balanced(tokens[:cut]):
            continue
        if word(tokens[0]) not in _CUT:
            return False
        tree = reader.attempt(tokens[:cut])
        if tree is None or isinstance(tree, (exp.Alias, exp.Column)):
            continue
        if _reads_nothing(tree):  # FROM is misspelt, or was never read
            return False
        dropped(reader, tokens, tree, tokens[cut:])
        return True
    return False


def _reads_nothing(tree: exp.Expr) -> bool:
    """Return whether what is left of a statement takes columns from nowhere."""
    query = tree if isinstance(tree, exp.Select) else tree.args.get("expression")
    if not isinstance(query, exp.Select) or query.args.get("from_") is not None:
        return False
    return any(isinstance(item.unalias(), exp.Column) for item in query.expressions)


def _with_long_numbers(reader: StatementReader, tokens: list[Token]) -> bool:
    """``100_000`` where the parser does not know it (Trino): a number, not a number with an alias."""
    joined: list[Token] = []
    for token in tokens:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.token_type == marks.NUMBER
            and last.end + 1 == token.start
            and token.text[:1] == "_"
            and token.text.replace("_", "").isdigit()
        ):
            text = last.text + token.text.replace("_", "")
            joined[-1] = Token(marks.NUMBER, text, token.line, token.col, last.start, token.end)
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
        if token.token_type == marks.L_PAREN:
            depth += 1
        elif token.token_type == marks.R_PAREN:
            depth -= 1
    return depth == 0
