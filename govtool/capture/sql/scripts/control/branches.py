"""Branches of control flow: which statements of a script are alternatives.

The arms of an IF or CASE, an exception handler, the body of a loop: what is written there may not be written, or
something else instead. Where a statement stands in them is its *path*, a tuple of ``Arm``; ``fold`` plays the arms of
one branch side by side.

Most dialects close a branch with words (``END IF``). In T-SQL an arm is the next statement or block, and whether a
branch is over shows only in what follows: ELSE, or something else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlglot import exp


class Arm(NamedTuple):
    """One way through a branch."""

    branch: int
    """The number of the branch in its script."""
    number: int
    """0 for the first arm."""
    rest: bool = False
    """It is taken where no other arm is: with it one of the arms always is."""
    loops: bool = False
    """It may be taken again."""
    handler: bool = False
    """It is taken from anywhere: an exception handler."""


Path = tuple[Arm, ...]

MAX_TESTS: Final = 64
"""Conditions that are followed for one statement."""


def exclusive(one: Path, other: Path) -> bool:
    """Return whether no run passes both paths: they part at a branch into different arms."""
    for a, b in zip(one, other, strict=False):
        if a.branch != b.branch:
            return False
        if a.number != b.number:
            return True
    return False


@dataclass(slots=True)
class _Open:
    """A branch that is not over yet."""

    kind: str
    """``if``, ``case``, ``loop`` or ``handler``."""
    branch: int
    depth: int
    """Blocks that were open when it began."""
    number: int = 0
    rest: bool = False
    waits: bool = False
    """T-SQL: the statement or block that is the arm has not begun."""
    over: bool = False
    """T-SQL: the arm is over; only ELSE goes on with the branch."""
    tests: tuple[exp.Expr, ...] = ()
    """The conditions with queries or variables in them that were evaluated to come to this arm."""


class Branches:
    """The branches that are open at a place of a script."""

    def __init__(self, outer: Path = (), outer_tests: tuple[exp.Expr, ...] = ()) -> None:
        """Start without an open branch.

        Args:
            outer: The place of the enclosing statement, if the text is dynamic SQL.
            outer_tests: The conditions that it stands under.
        """
        self.outer = outer
        self.outer_tests = self._given_tests = outer_tests
        self.open: list[_Open] = []
        self.loops: set[str] = set()
        """The labels, in lower case, of loops that have begun so far."""
        self._path: Path | None = None

    @property
    def path(self) -> Path:
        """The place of a statement in the control flow."""
        if not self.open and not self.outer:
            return ()
        if self._path is None:
            self._path = (
                *self.outer,
                *(
                    Arm(item.branch, item.number, item.rest, item.kind == "loop", item.kind == "handler")
                    for item in self.open
                ),
            )
        return self._path

    @property
    def tests(self) -> tuple[exp.Expr, ...]:
        """The conditions with queries or variables in them that decide whether a statement runs."""
        if not self.open:
            return self.outer_tests
        return (*self.outer_tests, *(test for item in self.open for test in item.tests))

    def evaluated(self, test: exp.Expr) -> bool:
        """Note a condition of the innermost branch; False where there are too many."""
        if not self.open or len(self.tests) >= MAX_TESTS:
            return False
        self.open[-1].tests = (*self.open[-1].tests, test)
        return True

    def exited(self, test: exp.Expr, loop: int | None) -> bool:
        """Note a condition under which the rest of the text, or all of a loop, is left; False if there are too many."""
        if test in self.tests:
            return True
        if len(self.tests) >= MAX_TESTS:
            return False
        if loop is None:
            self.outer_tests = (*self.outer_tests, test)
        for item in self.open:
            if item.branch == loop:
                item.tests = (*item.tests, test)
        return True

    def forget_exits(self) -> None:
        """A routine that stands among others is over."""
        self.outer_tests = self._given_tests

    def handles(self) -> bool:
        """Return whether the innermost branch is an exception handler."""
        return bool(self.open) and self.open[-1].kind == "handler"

    def innermost_loop(self) -> int | None:
        """Return the number of the innermost loop that is open."""
        return next((item.branch for item in reversed(self.open) if item.kind == "loop"), None)

    def outermost_loop(self) -> int | None:
        """Return the number of the outermost loop that is open."""
        return next((item.branch for item in self.open if item.kind == "loop"), None)

    def begin(self, kind: str, branch: int, depth: int, *, always: bool = False, waits: bool = False) -> None:
        """A branch begins; ``always``: its one arm is taken in any case (``LOOP``)."""
        self._path = None
        self.open.append(_Open(kind, branch, depth, rest=always, waits=waits))

    def next(self, kinds: tuple[str, ...], *, rest: bool = False) -> None:
        """The next arm of the innermost branch, if it is of one of these kinds."""
        if self.open and self.open[-1].kind in kinds and not self.open[-1].rest:
            self._path = None
            self.open[-1].number += 1
            self.open[-1].rest = rest

    def end(self, kinds: tuple[str, ...]) -> bool:
        """The innermost branch of these kinds is over, and all in it; False if there is none."""
        for index in range(len(self.open) - 1, -1, -1):
            if self.open[index].kind in kinds:
                self._path = None
                del self.open[index:]
                return True
        return False

    def end_block(self, depth: int) -> None:
        """The block of this depth is over, and with it the branches that began in it and the handler that it is."""
        kept = [item for item in self.open if item.depth < depth]
        if len(kept) != len(self.open):
            self._path = None
            self.open = kept

    def ends_case(self, depth: int) -> bool:
        """True if an END without a word ends a CASE that began at this depth, and not a block; it is over then."""
        if self.open and self.open[-1].kind == "case" and self.open[-1].depth == depth:
            self._path = None
            self.open.pop()
            return True
        return False

    # -- T-SQL: arms without an end ------------------------------------------------------------------------------------

    def block(self, depth: int) -> None:
        """A block begins; it is the arm that was waited for."""
        if self.open and self.open[-1].waits:
            self.open[-1].waits = False
            self.open[-1].depth = depth

    def passed(self) -> None:
        """A statement, or the block of an arm, is over."""
        if self.open and self.open[-1].waits:
            self._over()

    def block_passed(self, depth: int) -> None:
        """The block of this depth is over; it may have been an arm."""
        if self.open and not self.open[-1].waits and not self.open[-1].over and self.open[-1].depth == depth:
            self._over()

    def _over(self) -> None:
        last = self.open[-1]
        last.waits = False
        last.over = True
        if last.rest or last.kind != "if":
            self._close()

    def _close(self) -> None:
        """The innermost branch is over; it may have been the arm of the one around it."""
        self._path = None
        self.open.pop()
        self.passed()

    def follows(self, head: str) -> None:
        """Note that the next statement begins with this word: branches that wait for ELSE in vain are over."""
        while self.open and self.open[-1].over:
            if head == "ELSE":
                last = self.open[-1]
                last.number, last.rest, last.waits, last.over = last.number + 1, True, True, False
                self._path = None
                return
            self._close()
