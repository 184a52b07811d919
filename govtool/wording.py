"""Numbers and names as people read them: counts with their noun, shares in percent; text that is safe to print."""

from __future__ import annotations

import re
from collections.abc import Sequence

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1: terminal escapes start here
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"  # invisible and direction-changing characters
    "\ud800-\udfff]"  # lone surrogates cannot be encoded
)


_NOT_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")


def count(number: int, singular: str, plural: str | None = None) -> str:
    """``1 column``, ``2 columns``, ``1,234 columns``."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def few(names: Sequence[str], shown: int = 3) -> str:
    """The first of several names, and how many more there are: ``a, b, c and 4 more``."""
    more = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def percent(part: int, whole: int) -> str:
    """A share with one decimal, never rounded up to 100.0%: ``96.4%``; ``n/a`` of nothing."""
    if whole == 0:
        return "n/a"
    return f"{min(100 * part / whole, 99.9 if part < whole else 100.0):.1f}%"


def printable(text: str) -> str:
    r"""Replace what could steer a terminal or deceive a reader by a visible escape: ``\x1b``, ``\u202e``."""
    return _UNSAFE.sub(_escape, text) if _UNSAFE.search(text) else text


def xml_text(text: str) -> str:
    """Printable text without the characters that XML has no way to write."""
    return _NOT_XML.sub("\ufffd", printable(text))


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    short = {9: r"\t", 10: r"\n", 13: r"\r"}.get(code)
    return short or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
