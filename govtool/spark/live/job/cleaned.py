"""What is written down of addresses, options and settings: never a login, a password, a key."""

from __future__ import annotations

import re

from govtool.redaction import SECRET, WORD, is_secret_name

_PART = r"(?:[\w$-]+|\"[^\"]+\"|`[^`]+`|\[[^\]]+\])"
_TABLE = re.compile(rf"\s*({_PART}(?:\.{_PART})*)(?:\s+(?:as\s+)?\w+)?\s*\Z", re.IGNORECASE)
"""A table's name, and maybe an alias behind it."""

_LOGIN = re.compile(r"(?<=//)[^/@\s]*@|(?<=thin:)[^@/]+/.*(?=@)")
_PARAMETER = re.compile(
    rf"([?&;(,]\s*(?:user|username|uid|(?=[\w.]*?(?:key|{WORD}))[\w.]++)\s*=)(?:\{{[^}}]*\}}|[^&;,)]*)",
    re.IGNORECASE,
)
"""SQL Server writes values with semicolons in braces, MySQL lists in parentheses."""
_OPTION = re.compile(rf"(?<![\w.-])(?=[\w.-]*?{WORD})([\w.-]++=)[^\s,;&]+", re.IGNORECASE)


def clean_url(url: str) -> str:
    """A JDBC URL without logins."""
    return _PARAMETER.sub(r"\1***", _LOGIN.sub("", url))


def clean_setting(name: str, value: str) -> str:
    """The value of a setting or an option: nothing of a secret, an address without its login."""
    if is_secret_name(name):
        return SECRET
    if value.startswith("jdbc:"):
        return clean_url(value)
    value = _LOGIN.sub("", value) if "//" in value else value
    return _OPTION.sub(r"\1***", value) if "=" in value else value


def plain_table(text: str) -> str:
    """The table that a FROM clause names; empty for a query or a join, whose text may hold data."""
    found = _TABLE.match(text)
    return found[1] if found is not None else ""
