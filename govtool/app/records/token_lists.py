"""Tokens of records as users give them: lists in files, and lists that name one record twice."""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from govtool.errors import UsageError
from govtool.given_files import read_given_text

_FOLDER_AND_VERSION = re.compile(r"^(?:.*/)?([^/@]+)@[^:@]*:")


def read_deletions(file: str) -> list[list[str]]:
    """Read a list of tokens a line.

    Args:
        file: A file of JSON Lines; ``-`` for standard input.

    Raises:
        UsageError: The file cannot be read, or a line is something else (``usage.deletions``).
    """
    try:
        text = sys.stdin.read() if file == "-" else read_given_text(Path(file))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(f"cannot be read: {reason.lower()}", code="usage.deletions", location=file) from error
    # Not splitlines: strings of JSON may hold U+2028 and its like as they are.
    found = [_tokens(line, f"{file}:{number}") for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not found:
        raise UsageError("the file has no deletions", code="usage.deletions", location=file)
    return found


def _tokens(line: str, place: str) -> list[str]:
    try:
        tokens: Any = json.loads(line)
    except (ValueError, RecursionError):
        tokens = None
    if not isinstance(tokens, list) or not tokens or not all(map(_is_token, tokens)):
        raise UsageError(
            "a list of tokens is expected", code="usage.deletions", location=place, hint='write ["token", "token"]'
        )
    return [str(each) for each in tokens]


def _is_token(value: Any) -> bool:
    """True of a text or a whole number; Python's booleans are whole numbers too."""
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def require_tokens(tokens: Sequence[str]) -> None:
    """Refuse a deletion of nothing, or of one record twice.

    Raises:
        UsageError: ``usage.arguments`` or ``usage.token-gone``.
    """
    if not tokens:
        raise UsageError("no record is named", code="usage.arguments", hint="give tokens, or --tokens FILE.jsonl")
    seen: set[str] = set()
    for token in tokens:
        if token in seen:
            raise UsageError(f"token '{token}' is deleted twice: it is gone already", code="usage.token-gone")
        seen.add(token)


def near_tokens(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Tokens that a text may mean: near ones, else those whose file and row are near; none where nothing is near.

    Tokens of files begin with a folder and hold a version, which nobody types. A key, ``users[id=17]``, is not near the
    row of that number.
    """
    known = [token for token in known if token.endswith("]") == text.endswith("]")]
    near = difflib.get_close_matches(text, known, 3, 0.5)
    if not near:
        short = {_FOLDER_AND_VERSION.sub(r"\1:", token): token for token in reversed(known)}
        near = [short[each] for each in difflib.get_close_matches(text, list(short), 3, 0.4)]
    return tuple(near)
