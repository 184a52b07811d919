"""Tags in comments, and tags with values, as policies name them."""

from __future__ import annotations

import re

_TAG = r"[A-Za-z](?:[\w./-]*\w)?(?:[:=][\w.@/-]*\w)?"
_END = r"(?=\s*(?:[,;|\])\n.]|$))"
_IN_COMMENT = (
    re.compile(rf"(?<![^\s(\[,;])#({_TAG})"),
    re.compile(rf"\[({_TAG}(?:\s*,\s*{_TAG})*)\]"),
    re.compile(rf"(?<![\w-])tags?\s*[:=]\s*({_TAG}(?:\s*,\s*{_TAG}{_END})*)", re.IGNORECASE),
)


def comment_tags(text: str) -> list[str]:
    """The tags that a comment gives: ``#pii``, ``[pii]``, ``[pii:email, secret]``, ``tag: pii``, ``tags: a, b``.

    >>> comment_tags("Where to write to [pii:email]; tags: contact, raw")
    ['pii:email', 'contact', 'raw']
    >>> comment_tags("the # of items, see issue #12")
    []
    """
    found: dict[str, None] = {}
    for pattern in _IN_COMMENT:
        for match in pattern.finditer(text):
            found.update((part.strip().replace("=", ":", 1), None) for part in match[1].split(","))
    return list(found)


def valued(key: str, value: str | None) -> list[str]:
    """A tag with a value as the tags that policies name.

    >>> valued("governance.pii", "email"), valued("pii", "true"), valued("pii", None)
    (['governance.pii:email', 'pii:email'], ['pii:true', 'pii'], ['pii'])
    """
    keys = dict.fromkeys((key, key.rpartition(".")[2]))
    full = [f"{name}:{value}" for name in keys] if value else []
    return full + ([] if value and value.lower() != "true" else list(keys))
