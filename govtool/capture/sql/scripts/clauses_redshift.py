"""Redshift's types of its catalog that the parser does not know: ``'{}'::aclitem[]`` is text to lineage."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql import marks
from govtool.capture.sql.lexer import like


def simplified(tokens: list[Token]) -> list[Token]:
    """Return a statement's tokens with casts to VARCHAR for those to types of other names; the same list if there are
    none.
    """
    out: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.token_type != marks.VAR or not index or tokens[index - 1].token_type != TokenType.DCOLON:
            out.append(token)
            index += 1
            continue
        out.append(like(token, TokenType.VARCHAR, "VARCHAR"))
        index += 1
        while index + 1 < len(tokens) and [t.text for t in tokens[index : index + 2]] == ["[", "]"]:
            index += 2
    return tokens if all(a is b for a, b in zip(out, tokens, strict=False)) else out
