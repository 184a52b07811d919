"""Escapes texts for a page: markup, and characters that are invisible or turn the direction of text."""

from __future__ import annotations

import html
import re

_INVISIBLE = (
    "\u0000-\u0008\u000b\u000c\u000e-\u001f"  # but spaces
    "\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff"  # halves of pairs: names of files need not be Unicode
)
INVISIBLE = re.compile(f"[{_INVISIBLE}]")
"""Control characters, marks of direction, invisible ones, and what UTF-8 cannot hold."""
UNSAFE = re.compile(f"[<>&{_INVISIBLE}]")
"""The same, and what could end a block of a page."""


def escaped(value: str) -> str:
    """A text as HTML; characters that are invisible or turn the direction are written out."""
    return html.escape(INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", value))
