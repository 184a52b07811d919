"""T-SQL's graph patterns as conditions: ``MATCH(a-(b)->c)`` means that an edge's ends are two nodes.

Source: Transact-SQL reference, "MATCH (SQL Graph)", "SHORTEST_PATH", and "Graph processing": a table of nodes has a
pseudo column ``$node_id``, one of edges ``$from_id`` and ``$to_id``. What is read is the same for a path of any length.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import closing, like, word


def without_match(tokens: list[Token]) -> list[Token]:
    """Return a statement with its graph patterns as conditions, and without ``FOR PATH`` and ``GRAPH PATH``; the same
    list if it has none.
    """
    found: list[Token] = []
    at = kept = 0
    while at < len(tokens):
        text = word(tokens[at])
        second = word(tokens[at + 1]) if at + 1 < len(tokens) else ""
        if text == "MATCH" and second == "(":
            end = closing(tokens, at + 1)
            condition = _condition(tokens[at + 2 : end])
            if condition is None:
                return tokens
            found += condition
            at = end + 1
        elif text == "WITHIN" and second == "GROUP" and [word(t) for t in tokens[at + 3 : at + 5]] == ["GRAPH", "PATH"]:
            at += 6
        elif text == "FOR" and second == "PATH" and at and tokens[at + 2 : at + 3] and _names(tokens, at):
            at += 2
        elif text == "LAST_NODE" and second == "(" and at + 3 < len(tokens):
            found.append(tokens[at + 2])
            at += 4
        else:
            found.append(tokens[at])
            at += 1
            kept += 1
    return found if kept < len(tokens) else tokens


def _names(tokens: Sequence[Token], at: int) -> bool:
    """True if ``FOR PATH`` stands behind a table in FROM, and is not an XML query's ``FOR XML``: an alias or comma
    follows.
    """
    following = tokens[at + 2]
    return following.token_type == marks.COMMA or word(following) in ("AS", "WHERE") or following.text.isidentifier()


def _condition(tokens: Sequence[Token]) -> list[Token] | None:
    """The condition that a pattern stands for; None if it is not understood."""
    parts = _flat(tokens)
    found: list[Token] = []
    start = 0
    while start < len(parts):
        end = next((i for i in range(start, len(parts)) if word(parts[i]) == "AND"), len(parts))
        hops = _hops(parts[start:end])
        if not hops:
            return None
        for one, other in hops:
            if found:
                found.append(like(one[0], marks.AND, "AND"))
            found += [*one, like(one[0], marks.EQ, "="), *other]
        start = end + 1
    return found or None


def _flat(tokens: Sequence[Token]) -> list[Token]:
    """The names and arrows of a pattern: without SHORTEST_PATH, groups and how often they may be repeated."""
    found: list[Token] = []
    braces = 0
    for index, token in enumerate(tokens):
        text = token.text
        if text == "{":
            braces += 1
        elif text == "}":
            braces -= 1
        elif not (
            braces
            or text in ("(", ")", "+")
            or (word(token) in ("SHORTEST_PATH", "LAST_NODE") and tokens[index + 1 : index + 2])
        ):
            if text == "->":
                found += [like(token, marks.DASH, "-"), like(token, TokenType.GT, ">")]
            else:
                found.append(token)
    return found


def _hops(parts: Sequence[Token]) -> list[tuple[list[Token], list[Token]]]:
    """The equalities that a chain ``a - b -> c <- d - e`` stands for; empty if it is none."""
    found: list[tuple[list[Token], list[Token]]] = []
    at = 1
    while at < len(parts):
        forward = [t.text for t in parts[at : at + 4 : 2]] == ["-", "-"] and parts[at + 3 : at + 4] != []
        if forward and parts[at + 3].text == ">" and at + 4 < len(parts):
            left, edge, right = parts[at - 1], parts[at + 1], parts[at + 4]
            ends = ("$from_id", "$to_id")
            at += 5
        elif [t.text for t in parts[at : at + 2]] == ["<", "-"] and at + 4 < len(parts) and parts[at + 3].text == "-":
            left, edge, right = parts[at - 1], parts[at + 2], parts[at + 4]
            ends = ("$to_id", "$from_id")
            at += 5
        else:
            return []
        if not all(t.text.replace("_", "").isalnum() or t.token_type == marks.IDENTIFIER for t in (left, edge, right)):
            return []
        found.append((_column(left, "$node_id"), _column(edge, ends[0])))
        found.append((_column(edge, ends[1]), _column(right, "$node_id")))
    return found


def _column(table: Token, name: str) -> list[Token]:
    return [table, like(table, marks.DOT, "."), like(table, marks.VAR, name)]
