"""Calls of Oracle's that take their arguments in a form of their own, as plain calls of the same arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import QUOTED_TYPES, closing, find_word, like, split, word, word_set


def plain_calls(tokens: list[Token]) -> list[Token]:
    """Return the tokens with such calls made plain; the same list if there are none."""
    out: list[Token] = []
    changed = False
    index = 0
    while index < len(tokens):
        token = tokens[index]
        text = word(token)
        if index + 1 < len(tokens) and tokens[index + 1].token_type == marks.L_PAREN and text in _CALLS:
            end = closing(tokens, index + 1)
            made = _CALLS[text](token, plain_calls(tokens[index + 2 : end]), tokens[end])
            if made is not None:
                out.extend(made)
                changed = True
                index = end + 1
                continue
        elif text in _WORDS and 0 < index < len(tokens) - 1:
            skipped = _WORDS[text](tokens, index, out)
            if skipped:
                changed = True
                index += skipped
                continue
        out.append(token)
        index += 1
    return out if changed else tokens


# -- calls: the name, what is inside its parentheses, the one that closes ---------------------------------------------


def _mining(name: Token, inner: list[Token], end: Token) -> list[Token] | None:
    """``PREDICTION(model, 1 COST MODEL USING a, b AS c)``: a value of ``a`` and ``b``; ``FOR x`` is what was learnt."""
    using = find_word(inner, {"USING"})
    if using < 0:
        return None
    arguments: list[list[Token]] = [_unaliased(item) for item in split(inner[using + 1 :])]
    if inner and word(inner[0]) == "FOR":
        model = inner[1 : using - 1] if word(inner[using - 1]) in ("ABS", "ASC", "DESC") else inner[1:using]
        arguments.append(model)
    return _call(name, arguments, end)


def _translate(name: Token, inner: list[Token], end: Token) -> list[Token] | None:
    """``TRANSLATE(a USING NCHAR_CS)``: the same text in another character set."""
    using = find_word(inner, {"USING"})
    if using < 0:
        return None
    charset = like(inner[-1], TokenType.STRING, inner[-1].text)
    return _call(name, [inner[:using], [charset], [like(charset, TokenType.STRING, "")]], end)


def _nth_value(name: Token, inner: list[Token], end: Token) -> list[Token] | None:
    """``NTH_VALUE(a, 2 FROM LAST)`` and other functions with FROM FIRST or LAST inside."""
    at = find_word(inner, {"FROM"})
    return None if at < 0 else _call(name, [inner[:at]], end)


def _ranked(name: Token, inner: list[Token], end: Token) -> list[Token] | None:
    """``APPROX_RANK(PARTITION BY a ORDER BY b)``: a rank over that window."""
    if not inner or word(inner[0]) not in ("PARTITION", "PARTITION BY", "ORDER", "ORDER BY"):
        return None
    opened = like(name, marks.L_PAREN, "(")
    return [name, opened, end, like(name, TokenType.OVER, "OVER"), opened, *inner, end]


def _extract(name: Token, inner: list[Token], end: Token) -> list[Token] | None:
    """``EXTRACT(xml, '/path')``: a function of its own name, which is no part of a date."""
    if find_word(inner, {"FROM"}) >= 0:
        return None
    return _call(like(name, marks.VAR, "EXTRACTXML"), [inner], end)


def _serialized(name: Token, inner: list[Token], end: Token) -> list[Token] | None:
    """``XMLSERIALIZE(CONTENT a AS CLOB NO INDENT)``, ``XMLPARSE(DOCUMENT a WELLFORMED)``."""
    if not inner or word(inner[0]) not in ("CONTENT", "DOCUMENT"):
        return None
    stop = find_word(inner, _SERIALIZED, 1)
    return _call(name, [inner[1 : stop if stop > 1 else len(inner)]], end)


_SERIALIZED: Final = word_set("AS ENCODING VERSION NO INDENT HIDE SHOW WELLFORMED")


def _call(name: Token, arguments: list[list[Token]], end: Token) -> list[Token]:
    out = [name, like(name, marks.L_PAREN, "(")]
    for index, argument in enumerate(arguments):
        if index:
            out.append(like(name, marks.COMMA, ","))
        out.extend(argument)
    return [*out, end]


def _unaliased(item: list[Token]) -> list[Token]:
    """An attribute without its name in the model: ``a AS b``, ``'F' b``."""
    as_ = find_word(item, {"AS"}, 1)
    if as_ > 0:
        return item[:as_]
    if len(item) > 1 and _is_name(item[-1]) and (item[-2].token_type in _OPERAND_ENDS or _is_name(item[-2])):
        return item[:-1]
    return item


_OPERAND_ENDS: Final = QUOTED_TYPES | {marks.R_PAREN, marks.NUMBER, marks.NULL}


def _is_name(token: Token) -> bool:
    return token.token_type in (marks.VAR, marks.IDENTIFIER)


# -- words: the tokens, where the word is, what was kept so far; the number of tokens that are done -------------------


def _new(tokens: list[Token], index: int, out: list[Token]) -> int:
    """``NEW typ(…)``: a call of the constructor."""
    before, following = tokens[index - 1], tokens[index + 1]
    if before.token_type in (marks.COLON, marks.DOT) or not _is_name(following) or index + 2 >= len(tokens):
        return 0
    return 1 if tokens[index + 2].token_type in (marks.L_PAREN, marks.DOT) else 0


def _member(tokens: list[Token], index: int, out: list[Token]) -> int:
    """``a [NOT] MEMBER [OF] b``: a comparison."""
    of = word(tokens[index + 1]) == "OF"
    before = tokens[index - 1]
    negated = word(before) == "NOT"
    if not of and not (_is_name(before) and _is_name(tokens[index + 1])):
        return 0
    if negated:
        out.pop()
    out.append(like(tokens[index], marks.EQ, "="))
    return 1 + of


def _from_end(tokens: list[Token], index: int, out: list[Token]) -> int:
    """``NTH_VALUE(a, 2) FROM LAST OVER (…)``."""
    if word(tokens[index + 1]) not in ("FIRST", "LAST") or tokens[index - 1].token_type != marks.R_PAREN:
        return 0
    following = word(tokens[index + 2]) if index + 2 < len(tokens) else ""
    return 2 if following in ("OVER", "RESPECT", "IGNORE") else 0


_MINING: Final = word_set(
    """PREDICTION PREDICTION_BOUNDS PREDICTION_COST PREDICTION_DETAILS PREDICTION_PROBABILITY PREDICTION_SET CLUSTER_ID
    CLUSTER_DETAILS CLUSTER_DISTANCE CLUSTER_PROBABILITY CLUSTER_SET FEATURE_ID FEATURE_COMPARE FEATURE_DETAILS
    FEATURE_SET FEATURE_VALUE ORA_DM_PARTITION_NAME VECTOR_EMBEDDING"""
)
_CALLS: Final[Mapping[str, Callable[[Token, list[Token], Token], list[Token] | None]]] = {
    **dict.fromkeys(_MINING, _mining),
    "TRANSLATE": _translate,
    "NTH_VALUE": _nth_value,
    "APPROX_RANK": _ranked,
    "EXTRACT": _extract,
    "XMLSERIALIZE": _serialized,
    "XMLPARSE": _serialized,
}
_WORDS: Final[Mapping[str, Callable[[list[Token], int, list[Token]], int]]] = {
    "NEW": _new,
    "MEMBER": _member,
    "FROM": _from_end,
}
