"""Regular expressions that match in linear time: RE2, and Python's ``re`` where it can do no more work.

Policies, selectors and aliases come from repositories and pull requests: ``/(a|a)*b/`` must not stop an answer. RE2
(https://github.com/google/re2) has no backtracking, and so no lookaround and no back-references, which are refused. A
call of it from Python costs ten times one of ``re``; expressions with few choices go through ``re`` on short ASCII
names, where both find the same.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

LONGEST_SIMPLE: Final = 300
"""Characters of a name that ``re`` may see."""
_CHOICES: Final = 10
"""Optional parts and alternatives of an expression without repeats that ``re`` may have, all together."""
_CHOICES_BESIDE: Final = 5
"""The same beside a repeat, which tries each of them at each length."""
_MEMORY: Final = 1 << 20
"""Bytes of a compiled expression; RE2 refuses more."""
_DIFFERENT: Final = re.compile(r"\\[^.\\/|()\[\]{}+*?^$_-]|\(\?(?!:|i\))|\[\[|[+*?}][+?]")
"""What means something else in RE2, or has other rules: classes, flags, named groups, lazy and possessive repeats."""


class LinearRegex:
    """A regular expression.

    Args:
        text: In RE2's syntax.
        simple: The same for ``re``, where the caller knows that it takes little work on short names; empty: find out.

    Raises:
        ValueError: It is not one, or would need too much memory.
    """

    __slots__ = ("_linear", "_simple", "text")

    def __init__(self, text: str, simple: str = "") -> None:
        self.text = text
        self._linear: Any = _compiled(text)
        chosen = simple or (text if _is_simple(text) else "")
        self._simple = _simple(chosen) if chosen else None

    def search(self, name: str) -> bool:
        """Return whether the expression matches anywhere in a name."""
        if self._simple is not None and _is_plain(name):
            return self._simple.search(name) is not None
        return self._linear.search(encodable(name)) is not None

    def fullmatch(self, name: str) -> bool:
        """Return whether the expression matches a whole name."""
        if self._simple is not None and _is_plain(name):
            return self._simple.fullmatch(name) is not None
        return self._linear.fullmatch(encodable(name)) is not None

    def groups(self, name: str) -> tuple[str, ...] | None:
        """Return what the groups of the expression match where it matches a whole name."""
        found = self._linear.fullmatch(encodable(name))
        return None if found is None else tuple(found.groups())


@lru_cache(maxsize=1024)
def _compiled(text: str) -> Any:
    import re2

    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    try:
        return re2.compile(encodable(text), options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        words = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(f"{text!r} is not a regular expression: {words}") from error


def _simple(text: str) -> re.Pattern[str] | None:
    """The expression for ``re``; None where that has other rules: ``$+``, and ``(?i)`` behind other text."""
    try:
        return re.compile(text, re.ASCII)
    except re.error:
        return None


def _is_plain(name: str) -> bool:
    return len(name) <= LONGEST_SIMPLE and name.isascii() and "\n" not in name


def last_end(pattern: re.Pattern[str], text: str) -> int:
    """Return where the last match of a pattern ends; 0 if there is none.

    An expression with ``.*?`` before its end looks at the rest of the text from each beginning without an end. It takes
    time in proportion if it is given the text up to the last end.
    """
    end = 0
    for found in pattern.finditer(text):
        end = found.end()
    return end


def encodable(text: str) -> str:
    """Replace lone surrogates, which have no bytes in UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _is_simple(text: str) -> bool:
    r"""Return whether ``re`` means the same and takes at most some thousand steps a character.

    >>> _is_simple("(?i)(^|[._])e?_?mail(_?addr(ess)?)?$"), _is_simple("(a|a)*b"), _is_simple(r"\w+")
    (True, False, False)
    """
    if not text.isascii() or _DIFFERENT.search(text):
        return False
    bare = re.sub(r"\\.", "x", text)
    bare = re.sub(r"\[\^?\]?[^\]]*\]", "x", bare).replace("(?:", "(").replace("(?i)", "")
    if re.search(r"\)[*+{]", bare):  # a repeated group multiplies the choices in it
        return False
    repeats = len(re.findall(r"[*+]|\{\d*,", bare))
    choices = len(re.findall(r"[?|]", bare))
    return (repeats == 0 and choices <= _CHOICES) or (repeats == 1 and choices <= _CHOICES_BESIDE)
