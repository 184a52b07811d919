"""Starts of statements in T-SQL, which does not require semicolons between them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token

from govtool.capture.sql import marks
from govtool.capture.sql.lexer import closing, word, word_set

_STARTERS = word_set(
    """SELECT INSERT UPDATE DELETE MERGE DECLARE SET IF WHILE BEGIN END ELSE EXEC EXECUTE CREATE ALTER DROP TRUNCATE
    PRINT RETURN COMMIT ROLLBACK USE RAISERROR THROW FETCH OPEN CLOSE DEALLOCATE GRANT REVOKE DENY SAVE WAITFOR
    BREAK CONTINUE GOTO BULK BACKUP RESTORE DBCC RECONFIGURE REVERT CHECKPOINT KILL SHUTDOWN"""
)
_OF_COLUMNS = frozenset({"MASKED", "ROWGUIDCOL", "PERSISTED", "SPARSE", "HIDDEN"})
_SET_OPERATORS = frozenset({"UNION", "ALL", "EXCEPT", "INTERSECT"})
_RIGHTS = frozenset({"GRANT", "REVOKE", "DENY"})
_CHANGES = frozenset({"UPDATE", "DELETE"})
_DDL = frozenset({"CREATE", "ALTER", "DROP"})
_BEFORE_STATEMENTS = frozenset({"XMLNAMESPACES", "CHANGE_TRACKING_CONTEXT"})
"""Items of WITH in front of a statement, beside common tables."""
_OBJECTS = word_set(
    """TABLE VIEW PROCEDURE PROC FUNCTION TRIGGER INDEX SEQUENCE SYNONYM SCHEMA TYPE DATABASE USER ROLE COLUMN
    CONSTRAINT DEFAULT RULE ASSEMBLY AGGREGATE STATISTICS"""
)
"""Objects that IF EXISTS may follow."""
_ROUTINES = frozenset({"PROCEDURE", "PROC", "TRIGGER", "FUNCTION"})
_EXPECTING = word_set("SELECT DISTINCT FROM JOIN WHERE AND OR NOT ON BY AS LIKE BETWEEN IN WHEN THEN ELSE HAVING CASE")
"""Words behind which an expression or a name stands."""


def split_statements(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split tokens without semicolons into statements; control words (``IF x``, ``BEGIN``, ``END``, ``ELSE``) stand
    alone.

    The header of a procedure, trigger or function (up to its ``AS``) is a piece of its own.
    """
    pieces: list[list[Token]] = []
    piece = _Piece()
    depth = cases = 0
    previous = ""
    for index, token in enumerate(tokens):
        kind = token.token_type
        if kind == marks.L_PAREN:
            depth += 1
        elif kind == marks.R_PAREN:
            depth -= 1
        elif kind == marks.COLON and depth <= 0 and not cases and _ends_label(tokens, index):
            piece.tokens.pop()  # a label is no statement, and ends the one before it
            if piece.tokens:
                pieces.append(piece.tokens)
            piece, previous = _Piece(), ""
            continue
        named = index > 0 and tokens[index - 1].token_type == marks.PARAMETER  # @end is no END
        text = "" if named else word(token)
        opens = (text == "WITH" and _opens_cte(tokens, index)) or (text == "SEND" and _sends(tokens, index))
        if depth <= 0 and text:
            if text == "CASE":
                cases += 1
            elif cases and text == "END":
                cases -= 1
            elif (
                not cases
                and piece.tokens
                and (text in _STARTERS or piece.closed or opens)
                and (text not in _CHANGES or _begins_change(tokens, index))
                and piece.ends_before(text, previous, tokens[index + 1 : index + 2])
            ):
                pieces.append(piece.tokens)
                piece = _Piece()
        elif (
            depth <= 1
            and kind == marks.L_PAREN
            and piece.closed
            and piece.head in ("BEGIN", "END", "ELSE")
            and previous != "WITH"
        ):
            pieces.append(piece.tokens)
            piece = _Piece()
        piece.add(token, text if depth <= 0 else "", previous, opens)
        previous = "@" if named else text
    if piece.tokens:
        pieces.append(piece.tokens)
    return pieces


def _opens_cte(tokens: Sequence[Token], index: int) -> bool:
    """True if WITH begins a statement (``WITH q AS (``, ``WITH q (a) AS (``, ``WITH XMLNAMESPACES (``) and is no table
    hint or option.
    """
    if index + 2 >= len(tokens) or tokens[index + 1].token_type == marks.L_PAREN:
        return False
    if word(tokens[index + 1]) in _BEFORE_STATEMENTS:
        return tokens[index + 2].token_type == marks.L_PAREN
    following = tokens[index + 2]
    if following.token_type == marks.L_PAREN:
        end = closing(tokens, index + 2)
        return end + 1 < len(tokens) and word(tokens[end + 1]) == "AS"
    return word(following) == "AS" and index + 3 < len(tokens) and tokens[index + 3].token_type == marks.L_PAREN


def _sends(tokens: Sequence[Token], index: int) -> bool:
    """Return whether SEND is the statement ``SEND ON CONVERSATION …`` and no column."""
    return [word(token) for token in tokens[index + 1 : index + 3]] == ["ON", "CONVERSATION"]


def _ends_label(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a colon stands behind a name, ``done:``, and not in front of one, as that of a parameter does."""
    if not index or tokens[index - 1].end + 1 != tokens[index].start:
        return False
    if index + 1 < len(tokens) and tokens[index + 1].start == tokens[index].end + 1:
        return False
    name = word(tokens[index - 1]).replace("_", "")
    return name.isalnum() and not name.isdigit()


def _begins_change(tokens: Sequence[Token], index: int) -> bool:
    """True if UPDATE or DELETE is a statement: no trigger's ``UPDATE(column)``, nor a foreign key's ``ON DELETE``."""
    if index + 1 >= len(tokens):
        return True
    following = tokens[index + 1]
    if following.token_type == marks.L_PAREN and word(tokens[index]) == "UPDATE":
        return False
    return not (index and word(tokens[index - 1]) == "ON" and word(following) in ("NO", "CASCADE", "SET"))


class _Piece:
    """A statement in the making."""

    __slots__ = ("action", "closed", "cte", "head", "routine", "second", "seen_query", "seen_set", "tokens")

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.head = ""
        self.second = ""
        self.seen_query = False
        self.seen_set = False
        self.action = False
        self.routine = False
        self.closed = False
        self.cte = False

    def add(self, token: Token, text: str, previous: str, opens: bool) -> None:
        self.tokens.append(token)
        if len(self.tokens) == 1:
            self.head = text
            self.closed = text in ("BEGIN", "END", "ELSE")
            if text == "SELECT":
                self.seen_query = True
            return
        if len(self.tokens) == 2:
            self.second = text
        if text in ("SELECT", "VALUES", "EXEC", "EXECUTE", "DEFAULT") or (
            self.head == "WITH" and text in ("INSERT", "UPDATE", "DELETE", "MERGE")
        ):
            self.seen_query = True
            if self.head == "WITH":
                self.head = text
                self.seen_query = text == "SELECT"
        elif text == "SET":
            self.seen_set = True
        elif text in ("ADD", "ALTER", "DROP") and self.head == "ALTER":
            self.action = True
        elif self.head in _DDL and text in _ROUTINES and len(self.tokens) <= 5 and self.second != "PARTITION":
            self.routine = True
        elif opens and text == "WITH":
            self.cte = True
        elif self.routine and text == "AS" and previous not in ("EXECUTE", "EXEC", "@"):
            self.closed = True
        elif self.routine and text == "EXTERNAL" and previous == "AS":
            self.closed = False

    def ends_before(self, text: str, previous: str, following: Sequence[Token]) -> bool:
        """True if a new statement begins with ``text``; ``following`` is the token behind it, if there is one."""
        head = self.head
        if self.closed:
            return self._control_ends(text)
        if head in _RIGHTS and text not in ("BEGIN", "END", "IF", "WHILE", "DECLARE"):
            return False
        if text == "WITH":
            return previous not in ("AS", "RETURN") and not (head == "INSERT" and not self.seen_query)
        if self.cte and text in ("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE") and previous == ")":
            self.cte = False
            return False
        if text == "SELECT":
            if previous in _SET_OPERATORS or previous in ("AS", "FOR", "RETURN"):
                return False
            return not (head in ("INSERT", "WITH") and not self.seen_query)
        if text in ("INSERT", "UPDATE", "DELETE", "MERGE"):
            if head == "WITH" or previous in ("FOR", "AFTER", "BEFORE", "OF", "INSTEAD", "AS"):
                return False
            if text == "MERGE" and previous in ("INNER", "LEFT", "RIGHT", "FULL"):
                return False
            if previous == "BULK":
                return False
            return not (head == "MERGE" and previous == "THEN") and not self.routine
        if text == "SET":
            in_merge = head == "MERGE" and previous == "UPDATE"
            return not (
                in_merge
                or previous in ("DELETE", "UPDATE")
                or (head == "ALTER" and not self.action and self._has_options(following))
                or (head == "UPDATE" and not self.seen_set)
            )
        if text == "IF":
            return not (head in _DDL and previous in _OBJECTS)
        if text in ("ALTER", "DROP", "CREATE"):
            if following and word(following[0]) in _OF_COLUMNS:  # ALTER COLUMN c DROP MASKED
                return False
            return previous != "OR" and not (head == "ALTER" and not self.action)
        if text in ("EXEC", "EXECUTE"):
            return not (head == "INSERT" and not self.seen_query) and previous not in ("WITH", ",")
        if text == "FETCH":
            return previous not in ("ROWS", "ROW")
        if text == "OPEN" and head == "DECLARE" and self.seen_query:  # of a cursor; a column may be called so, too
            return previous not in _EXPECTING and (previous in (")", "@") or previous.replace("_", "").isalnum())
        if text in ("OPEN", "CLOSE", "SAVE", "CONTINUE", "BREAK"):
            return not (head in _DDL or head == "DECLARE")
        return not (text == "END" and head == "ALTER" and previous == "ROW")  # GENERATED ALWAYS AS ROW END

    def _has_options(self, following: Sequence[Token]) -> bool:
        """Return whether SET belongs to an ALTER: of a database once, else in parentheses."""
        if self.second in ("DATABASE", "SERVER"):
            return not self.seen_set
        return bool(following) and following[0].token_type == marks.L_PAREN

    def _control_ends(self, text: str) -> bool:
        if self.routine:
            return text != "EXTERNAL"
        if self.head == "BEGIN":
            return not (
                len(self.tokens) == 1 and text in ("TRY", "CATCH", "TRAN", "TRANSACTION", "DISTRIBUTED", "ATOMIC")
            ) and not (
                (self.second in ("TRAN", "TRANSACTION") and text not in _STARTERS)
                or (self.second == "ATOMIC" and (text == ")" or (text == "WITH" and len(self.tokens) == 2)))
            )
        if self.head == "END":
            return text not in ("TRY", "CATCH", "CONVERSATION")
        return True
