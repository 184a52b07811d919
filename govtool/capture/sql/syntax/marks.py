"""The types of tokens that the extractor asks for, bound once, as ``nodes`` does with the classes of the tree.

Python 3.11 looks a member of an enumeration up by a property each time, which takes longer than all else that is done
with a token; compiled, a constant of a module is read without looking anything up.
"""

from __future__ import annotations

import typing

from sqlglot.tokenizer_core import TokenType

ALIAS: typing.Final = TokenType.ALIAS
ALTER: typing.Final = TokenType.ALTER
AND: typing.Final = TokenType.AND
BIT_STRING: typing.Final = TokenType.BIT_STRING
BYTE_STRING: typing.Final = TokenType.BYTE_STRING
COLON: typing.Final = TokenType.COLON
COLON_EQ: typing.Final = TokenType.COLON_EQ
COLUMN: typing.Final = TokenType.COLUMN
COMMA: typing.Final = TokenType.COMMA
CREATE: typing.Final = TokenType.CREATE
DASH: typing.Final = TokenType.DASH
DECLARE: typing.Final = TokenType.DECLARE
DEFAULT: typing.Final = TokenType.DEFAULT
DOT: typing.Final = TokenType.DOT
DPIPE: typing.Final = TokenType.DPIPE
EQ: typing.Final = TokenType.EQ
FALSE: typing.Final = TokenType.FALSE
EXISTS: typing.Final = TokenType.EXISTS
FROM: typing.Final = TokenType.FROM
HEREDOC_STRING: typing.Final = TokenType.HEREDOC_STRING
HEX_STRING: typing.Final = TokenType.HEX_STRING
IDENTIFIER: typing.Final = TokenType.IDENTIFIER
INSERT: typing.Final = TokenType.INSERT
INTO: typing.Final = TokenType.INTO
L_BRACKET: typing.Final = TokenType.L_BRACKET
L_PAREN: typing.Final = TokenType.L_PAREN
NULL: typing.Final = TokenType.NULL
NUMBER: typing.Final = TokenType.NUMBER
OR: typing.Final = TokenType.OR
PARAMETER: typing.Final = TokenType.PARAMETER
PLUS: typing.Final = TokenType.PLUS
REPLACE: typing.Final = TokenType.REPLACE
R_BRACKET: typing.Final = TokenType.R_BRACKET
R_PAREN: typing.Final = TokenType.R_PAREN
SELECT: typing.Final = TokenType.SELECT
SEMICOLON: typing.Final = TokenType.SEMICOLON
STAR: typing.Final = TokenType.STAR
STRING: typing.Final = TokenType.STRING
TABLE: typing.Final = TokenType.TABLE
THEN: typing.Final = TokenType.THEN
TRUE: typing.Final = TokenType.TRUE
VALUES: typing.Final = TokenType.VALUES
VAR: typing.Final = TokenType.VAR
VIEW: typing.Final = TokenType.VIEW
WHEN: typing.Final = TokenType.WHEN
WITH: typing.Final = TokenType.WITH

ROW_COUNT: typing.Final = "@@rowcount"
"""No token: the name of the variable that holds how many rows the statement before has touched, in every dialect."""

EXITED: typing.Final = "exited "
"""Begins the names of variables that say whether a routine or loop was left: no script can name them."""
