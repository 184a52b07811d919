"""Starts of statements in T-SQL, which does not require semicolons between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlglot.tokenizer_core import Token

from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import closing, word, word_set

_STARTERS = word_set(
    """SELECT INSERT UPDATE DELETE MERGE DECLARE SET IF WHILE BEGIN END ELSE EXEC EXECUTE CREATE ALTER DROP TRUNCATE
    PRINT RETURN COMMIT ROLLBACK USE RAISERROR THROW FETCH OPEN CLOSE DEALLOCATE GRANT REVOKE DENY SAVE WAITFOR
    BREAK CONTINUE GOTO BULK BACKUP RESTORE DBCC RECONFIGURE REVERT CHECKPOINT KILL SHUTDOWN"""
)
_OF_COLUMNS = frozenset({"MASKED", "ROWGUIDCOL", "PERSISTED", "SPARSE", "HIDDEN"})
_SET_OPERATORS = frozenset({"UNION", "ALL", "EXCEPT", "INTERSECT"})
_RIGHTS = frozenset({"GRANT", "REVOKE", "DENY"})
_NO_RIGHTS = frozenset({"BEGIN", "END", "IF", "WHILE", "DECLARE"})
"""Words that no right is called by."""
_CHANGES = frozenset({"UPDATE", "DELETE"})
_MODIFYING = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
_QUERIES = frozenset({"SELECT", "VALUES", "EXEC", "EXECUTE", "DEFAULT"})
_CONTROL = frozenset({"BEGIN", "END", "ELSE"})
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
        depth += (kind == marks.L_PAREN) - (kind == marks.R_PAREN)
        if kind == marks.COLON and depth <= 0 and not cases and _ends_label(tokens, index):
            piece.tokens.pop()  # a label is no statement, and ends the one before it
            pieces.append(piece.tokens)
            piece, previous = _Piece(), ""
            continue
        named = index > 0 and tokens[index - 1].token_type == marks.PARAMETER  # @end is no END
        text = "" if named else word(token)
        opens = _opens(tokens, index, text)
        outer = text if depth <= 0 else ""
        ends = False
        if outer:
            if text == "CASE":
                cases += 1
            elif not cases:
                ends = _ends(piece, tokens, index, text, previous, opens)
            elif text == "END":
                cases -= 1
        elif depth <= 1 and kind == marks.L_PAREN and previous != "WITH":
            ends = piece.is_control()
        if ends:
            pieces.append(piece.tokens)
            piece = _Piece()
        piece.add(token, outer, previous, opens)
        previous = "@" if named else text
    pieces.append(piece.tokens)
    return [each for each in pieces if each]


def _opens(tokens: Sequence[Token], index: int, text: str) -> bool:
    """Return whether WITH or SEND, which are words inside of statements as well, begins a statement."""
    if text == "WITH":
        return _opens_cte(tokens, index)
    return text == "SEND" and _sends(tokens, index)


def _ends(piece: _Piece, tokens: Sequence[Token], index: int, text: str, previous: str, opens: bool) -> bool:
    """Return whether a statement ends before the word at ``index``."""
    if not piece.tokens or not (text in _STARTERS or piece.closed or opens):
        return False
    if text in _CHANGES and not _begins_change(tokens, index):
        return False
    return piece.ends_before(text, previous, tokens[index + 1 : index + 2])


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
            self.closed = text in _CONTROL
            if text == "SELECT":
                self.seen_query = True
            return
        if len(self.tokens) == 2:
            self.second = text
        if text in _QUERIES or (self.head == "WITH" and text in _MODIFYING):
            self.seen_query = True
            if self.head == "WITH":
                self.head = text
                self.seen_query = text == "SELECT"
        elif text == "SET":
            self.seen_set = True
        elif text in ("ADD", "ALTER", "DROP") and self.head == "ALTER":
            self.action = True
        elif text in _ROUTINES and self._names_routine():
            self.routine = True
        elif opens and text == "WITH":
            self.cte = True
        elif self.routine:
            self._header(text, previous)

    def _names_routine(self) -> bool:
        return self.head in _DDL and len(self.tokens) <= 5 and self.second != "PARTITION"

    def _header(self, text: str, previous: str) -> None:
        """AS ends the header of a routine; ``AS EXTERNAL NAME`` does not."""
        if text == "AS" and previous not in ("EXECUTE", "EXEC", "@"):
            self.closed = True
        elif text == "EXTERNAL" and previous == "AS":
            self.closed = False

    def is_control(self) -> bool:
        """Return whether this is a word of control flow, complete by itself."""
        return self.closed and self.head in _CONTROL

    def awaits_query(self) -> bool:
        """Return whether the query or the rows of an INSERT are still to come."""
        return self.head == "INSERT" and not self.seen_query

    def ends_before(self, text: str, previous: str, following: Sequence[Token]) -> bool:
        """True if a new statement begins with ``text``; ``following`` is the token behind it, if there is one."""
        if self.closed:
            return self._control_ends(text)
        if self.head in _RIGHTS and text not in _NO_RIGHTS:
            return False
        if self.cte and previous == ")" and (text == "SELECT" or text in _MODIFYING):
            self.cte = False
            return False
        begins = _BEGINS.get(text)
        return begins is None or begins(self, text, previous, following)

    def has_options(self, following: Sequence[Token]) -> bool:
        """Return whether SET belongs to an ALTER: of a database once, else in parentheses."""
        if self.second in ("DATABASE", "SERVER"):
            return not self.seen_set
        return bool(following) and following[0].token_type == marks.L_PAREN

    def _control_ends(self, text: str) -> bool:
        if self.routine:
            return text != "EXTERNAL"
        if self.head == "BEGIN":
            return not self._begins_block(text)
        if self.head == "END":
            return text not in ("TRY", "CATCH", "CONVERSATION")
        return True

    def _begins_block(self, text: str) -> bool:
        """Return whether a word belongs to BEGIN: of a TRY, a transaction, an atomic block with its options."""
        if len(self.tokens) == 1 and text in ("TRY", "CATCH", "TRAN", "TRANSACTION", "DISTRIBUTED", "ATOMIC"):
            return True
        if self.second in ("TRAN", "TRANSACTION"):
            return text not in _STARTERS
        return self.second == "ATOMIC" and (text == ")" or (text == "WITH" and len(self.tokens) == 2))


# -- does a statement begin with this word? The piece before it, the word, the one before it, the token behind it ----


def _with(piece: _Piece, text: str, previous: str, following: Sequence[Token]) -> bool:
    return previous not in ("AS", "RETURN") and not piece.awaits_query()


def _select(piece: _Piece, text: str, previous: str, following: Sequence[Token]) -> bool:
    if previous in _SET_OPERATORS or previous in ("AS", "FOR", "RETURN"):
        return False
    return not (piece.awaits_query() or (piece.head == "WITH" and not piece.seen_query))


def _change(piece: _Piece, text: str, previous: str, following: Sequence[Token]) -> bool:
    if piece.head == "WITH" or previous in ("FOR", "AFTER", "BEFORE", "OF", "INSTEAD", "AS", "BULK"):
        return False
    if text == "MERGE" and previous in ("INNER", "LEFT", "RIGHT", "FULL"):
        return False
    return not (piece.head == "MERGE" and previous == "THEN") and not piece.routine


def _set(piece: _Piece, text: str, previous: str, following: Sequence[Token]) -> bool:
    if previous in ("DELETE", "UPDATE") or (piece.head == "UPDATE" and not piece.seen_set):
        return False
    return not (piece.head == "ALTER" and not piece.action and piece.has_options(following))


def _if(piece: _Piece, text: str, previous: str, following: Sequence[Token]) -> bool:
    return not (piece.head in _DDL and previous in _OBJECTS)


def _ddl(piece: _Piece, text: str, previous: str, following: Sequence[Token]) -> bool:
    if following and word(following[0]) in _OF_COLUMNS:  # ALTER COLUMN c DROP MASKED
        return False
    return previous != "OR" and not (piece.head == "ALTER" and not piece.action)


def _exec(piece: _Piece, text: str, previous: str, following: Sequence[Token]) -> bool:
    return not piece.awaits_query() and previous not in ("WITH", ",")


def _fetch(piece: _Piece, text: str, previous: str, following: Sequence[Token]) -> bool:
    return previous not in ("ROWS", "ROW")


def _open(piece: _Piece, text: str, previous: str, following: Sequence[Token]) -> bool:
    if piece.head == "DECLARE" and piece.seen_query:  # of a cursor; a column may be called so, too
        return previous not in _EXPECTING and (previous in (")", "@") or previous.replace("_", "").isalnum())
    return _plain(piece, text, previous, following)


def _plain(piece: _Piece, text: str, previous: str, following: Sequence[Token]) -> bool:
    return not (piece.head in _DDL or piece.head == "DECLARE")


def _end(piece: _Piece, text: str, previous: str, following: Sequence[Token]) -> bool:
    return not (piece.head == "ALTER" and previous == "ROW")  # GENERATED ALWAYS AS ROW END


_BEGINS: Final[Mapping[str, Callable[[_Piece, str, str, Sequence[Token]], bool]]] = {
    "WITH": _with,
    "SELECT": _select,
    **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "MERGE"), _change),
    "SET": _set,
    "IF": _if,
    **dict.fromkeys(("ALTER", "DROP", "CREATE"), _ddl),
    **dict.fromkeys(("EXEC", "EXECUTE"), _exec),
    "FETCH": _fetch,
    "OPEN": _open,
    **dict.fromkeys(("CLOSE", "SAVE", "CONTINUE", "BREAK"), _plain),
    "END": _end,
}
"""Words that do not begin a statement everywhere."""
