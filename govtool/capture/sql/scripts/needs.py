"""What tables need beside their columns, by statements that are not of SQL's grammar: policies and publications.

    CREATE | ALTER POLICY p ON t … USING (condition) WITH CHECK (condition)                       PostgreSQL
    CREATE [OR REPLACE] ROW ACCESS POLICY p ON t GRANT TO (…) FILTER USING (condition)            BigQuery
    CREATE | ALTER SECURITY POLICY p ADD FILTER PREDICATE f(c) ON t, ADD BLOCK PREDICATE …        T-SQL
    CREATE PUBLICATION p FOR TABLE t (a, b) WHERE (condition), u …                                PostgreSQL
    CREATE | ALTER TABLE t … ROW ACCESS POLICY p ON (a), ROW FILTER f ON (a), POLICY p USING (a)  Snowflake, Databricks

The tree of a statement is a COMMAND with arguments of our own, which ``walk/writing/unread`` reads: ``role``, which is
``policy``, ``publication`` or ``rule`` (see ``triggers``), and ``parts``, which are COMMANDs with ``table`` and
``needs``, expressions over its row, perhaps called as ``records`` names it.
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
_CONDITION: Final = frozenset({"USING", "CHECK"})
"""Words behind which a policy has a condition in parentheses."""


def needed(reader: StatementReader, tokens: list[Token]) -> bool:
    """Add a policy or a publication by what it names; False if the statement is none, or names nothing."""
    words = tuple([word(token) for token in tokens[1:6]])
    if word(tokens[0]) not in ("CREATE", "ALTER"):
        return False
    role = "policy"
    if words[:2] == _SECURITY:
        parts = _predicates(reader, tokens)
    elif any(words[: len(head)] == head for head in _POLICY):
        parts = [_policy(reader, tokens)]
    elif words[:1] == ("PUBLICATION",):
        role, parts = "publication", _published(reader, tokens)
        if not parts:
            reader.add(tokens, None, "ignored")
            return True
    else:
        return False
    if not parts or None in parts:
        return False
    _add(reader, tokens, parts, role, f"{word(tokens[0]).lower()} {role}")
    return True


def add_ruling_columns(reader: StatementReader, tokens: list[Token]) -> None:
    """Add the columns that the access rules in the clauses of a CREATE or ALTER TABLE name."""
    at = find_word(tokens, {"TABLE", "VIEW"}, 1)
    needs: list[list[Token]] = []
    index = at + 1
    while index < len(tokens) - 3:
        if tokens[index + 1].token_type == marks.L_PAREN and _rules(tokens, index):
            end = closing(tokens, index + 1)
            needs += split(tokens[index + 2 : end])
            index = end
        index += 1
    if at < 0 or not needs:
        return
    opening = next(i for i in range(at + 1, len(tokens)) if tokens[i].token_type == marks.L_PAREN)
    part = _part(reader, tokens[at + 1 : opening], needs)
    if part is not None:
        _add(reader, tokens, [part], "policy", "alter table")


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
    behind = name_end(tokens, on + 1)
    conditions = []
    at = find_word(tokens, _CONDITION, behind)
    while 0 <= at < len(tokens) - 1:
        end = at + 1
        if tokens[end].token_type == marks.L_PAREN:
            end = closing(tokens, end) + 1
            conditions.append(tokens[at + 1 : end])
        at = find_word(tokens, _CONDITION, end)
    return _part(reader, tokens[on + 1 : behind], conditions)


def _predicates(reader: StatementReader, tokens: list[Token]) -> list[exp.Expr | None]:
    """The calls behind each PREDICATE of T-SQL, of the table behind its ON; one that is dropped has no call."""
    found: list[exp.Expr | None] = []
    at = find_word(tokens, {"PREDICATE"}, 2)
    while at >= 0:
        on = find_word(tokens, {"ON"}, at)
        if on < 0:
            return [*found, None]
        if on > at + 1:
            call = tokens[at + 1 : on]
            found.append(_part(reader, tokens[on + 1 : name_end(tokens, on + 1)], [call, _any_row_of(call)]))
        at = find_word(tokens, {"PREDICATE"}, on)
    return found


def _any_row_of(call: list[Token]) -> list[Token]:
    """``EXISTS (SELECT * FROM f(c))``: the rows that a table-valued function lets through."""
    kinds = (marks.EXISTS, marks.L_PAREN, marks.SELECT, marks.STAR, marks.FROM)
    opening = [
        like(call[0], kind, text) for kind, text in zip(kinds, ("EXISTS", "(", "SELECT", "*", "FROM"), strict=True)
    ]
    return [*opening, *call, like(call[-1], marks.R_PAREN, ")")]


def _published(reader: StatementReader, tokens: list[Token]) -> list[exp.Expr | None]:
    """The columns that a publication lists of its tables, and the condition on their rows; none where it lists none."""
    start = find_word(tokens, {"TABLE"}, 2)
    end = find_word(tokens, {"WITH"}, start)
    found: list[exp.Expr | None] = []
    for item in split(tokens[start + 1 : end if end > 0 else len(tokens)]) if start > 0 else ():
        first = 1 if word(item[0]) in ("ONLY", "TABLE") else 0
        at = behind = name_end(item, first)
        needs: list[list[Token]] = []
        if at < len(item) and item[at].token_type == marks.L_PAREN:
            needs += split(item[at + 1 : closing(item, at)])
            at = closing(item, at) + 1
        if at < len(item) and word(item[at]) == "WHERE":
            needs.append(item[at + 1 :])
        if needs:
            found.append(_part(reader, item[first:behind], needs))
    return found


def _part(reader: StatementReader, name: list[Token], needs: list[list[Token]]) -> exp.Expr | None:
    """The command of the table that tokens begin with and expressions over its row; None if any does not parse."""
    found: list[exp.Expr] = []
    for need in needs:
        tree = reader.attempt([like(need[0], marks.SELECT, "SELECT"), *need]) if need else None
        if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
            return None
        found.append(tree.expressions[0])
    table = table_at(name, 0, reader.lex.name)
    return exp.Command(this="NEED", table=table, needs=found) if table is not None and found else None


def _add(reader: StatementReader, tokens: list[Token], parts: list[exp.Expr | None], role: str, head: str) -> None:
    reader.add(tokens, exp.Command(this="NEEDS", parts=parts, role=role), "ignored", head=head)
