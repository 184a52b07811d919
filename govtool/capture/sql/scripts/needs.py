"""What tables need beside their columns, by statements that are not of SQL's grammar: policies and publications.

    CREATE | ALTER POLICY p ON t … USING (condition) WITH CHECK (condition)                       PostgreSQL
    CREATE [OR REPLACE] ROW ACCESS POLICY p ON t GRANT TO (…) FILTER USING (condition)            BigQuery
    CREATE | ALTER SECURITY POLICY p ADD FILTER PREDICATE f(c) ON t, ADD BLOCK PREDICATE …        T-SQL
    CREATE PUBLICATION p FOR TABLE t (a, b) WHERE (condition), u …                                PostgreSQL
    CREATE | ALTER TABLE t … ROW ACCESS POLICY p ON (a), ROW FILTER f ON (a), POLICY p USING (a)  Snowflake, Databricks

The trees are COMMANDs with arguments of our own; ``walk/writing/unread`` reads them: ``table``, ``needs`` (expressions
over its row) and ``role``, which is ``policy`` or ``publication``.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.scripts.unread import table_at
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import closing, find_word, like, name_end, split, word

_POLICY: Final = (("POLICY",), ("ROW", "ACCESS", "POLICY"), ("OR", "REPLACE", "ROW", "ACCESS", "POLICY"))
_SECURITY: Final = ("SECURITY", "POLICY")


def needed(reader: StatementReader, tokens: list[Token]) -> bool:
    """Add a policy or a publication by what it names; False if the statement is none, or names nothing."""
    words = tuple([word(token) for token in tokens[1:6]])
    if word(tokens[0]) not in ("CREATE", "ALTER"):
        return False
    if words[:2] == _SECURITY:
        found = [_predicate(reader, tokens, at) for at, token in enumerate(tokens) if word(token) == "PREDICATE"]
    elif any(words[: len(head)] == head for head in _POLICY):
        found = [_policy(reader, tokens)]
    elif words[:1] == ("PUBLICATION",):
        found = _published(reader, tokens)
        if not found:
            reader.add(tokens, None, "ignored")
            return True
    else:
        return False
    trees = [tree for tree in found if tree is not None]
    if not trees or len(trees) < len(found):
        return False
    for tree in trees:
        reader.add(tokens, tree, "ignored", head=f"{word(tokens[0]).lower()} {tree.args['role']}")
    return True


def add_ruling_columns(reader: StatementReader, tokens: list[Token]) -> None:
    """Add the columns that the access rules in the clauses of a CREATE or ALTER TABLE name."""
    at = find_word(tokens, {"TABLE", "VIEW"}, 1)
    listed = [
        tokens[i + 2 : closing(tokens, i + 1)]
        for i in range(at + 1, len(tokens) - 3)
        if tokens[i + 1].token_type == marks.L_PAREN and _rules(tokens, i)
    ]
    needs = [column for columns in listed for column in split(columns)]
    tree = _tree(reader, tokens, at + 1, needs, "policy") if at > 0 and needs else None
    if tree is not None:
        reader.add(tokens, tree, "ignored", head="alter table")


def _rules(tokens: list[Token], at: int) -> bool:
    """Return whether an ON or USING has the columns of an access rule behind it: ``ROW FILTER schema.f ON``."""
    start = at - 1
    while start > 2 and tokens[start - 1].token_type == marks.DOT:
        start -= 2
    before = tuple([word(token) for token in tokens[max(start - 2, 0) : start]])
    listed = word(tokens[at]) == "COLUMNS" and word(tokens[at - 1]) == "USING"
    return listed or (word(tokens[at]), *before) in _RULES


_RULES: Final = frozenset({("ON", "ACCESS", "POLICY"), ("ON", "ROW", "FILTER"), ("USING", "MASKING", "POLICY")})


def _policy(reader: StatementReader, tokens: list[Token]) -> exp.Expr | None:
    """The conditions behind USING and CHECK; None where there is no table, no condition, or one that does not parse."""
    on = find_word(tokens, {"ON"}, 2)
    if on < 0 or on + 1 >= len(tokens):
        return None
    opened = [at + 1 for at in range(name_end(tokens, on + 1), len(tokens) - 1) if _opens(tokens, at)]
    return _tree(reader, tokens, on + 1, [tokens[at : closing(tokens, at) + 1] for at in opened], "policy")


def _opens(tokens: list[Token], at: int) -> bool:
    return word(tokens[at]) in ("USING", "CHECK") and tokens[at + 1].token_type == marks.L_PAREN


def _predicate(reader: StatementReader, tokens: list[Token], at: int) -> exp.Expr | None:
    """The call behind a PREDICATE of T-SQL, of the table behind its ON."""
    on = find_word(tokens, {"ON"}, at)
    return _tree(reader, tokens, on + 1, [tokens[at + 1 : on]], "policy") if on > 0 else None


def _published(reader: StatementReader, tokens: list[Token]) -> list[exp.Expr | None]:
    """The columns that a publication lists of its tables, and the condition on their rows; none where it lists none."""
    start = find_word(tokens, {"TABLE"}, 2)
    end = find_word(tokens, {"WITH"}, start)
    found: list[exp.Expr | None] = []
    for item in split(tokens[start + 1 : end if end > 0 else len(tokens)]) if start > 0 else ():
        first = item[1 if word(item[0]) in ("ONLY", "TABLE") else 0]
        at = name_end(item, item.index(first))
        needs: list[list[Token]] = []
        if at < len(item) and item[at].token_type == marks.L_PAREN:
            needs += split(item[at + 1 : closing(item, at)])
            at = closing(item, at) + 1
        if at < len(item) and word(item[at]) == "WHERE":
            needs.append(item[at + 1 :])
        if needs:
            found.append(_tree(reader, tokens, tokens.index(first), needs, "publication"))
    return found


def _tree(
    reader: StatementReader, tokens: list[Token], table: int, needs: list[list[Token]], role: str
) -> exp.Expr | None:
    """The command of a table and expressions over its row; None if any of them does not parse."""
    found: list[exp.Expr] = []
    for need in needs:
        tree = reader.attempt([like(need[0], marks.SELECT, "SELECT"), *need]) if need else None
        if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
            return None
        found.append(tree.expressions[0])
    named = table_at(tokens, table, reader.lex.name)
    return exp.Command(this="NEEDS", table=named, needs=found, role=role) if named is not None and found else None
