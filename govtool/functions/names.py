"""Functions by their names: as users write them, as parsers of SQL call them, with and without a schema.

The graph has the name that sqlglot gives a function, whatever the dialect (``substr`` is ``substring``, PostgreSQL's
``date_trunc`` is ``timestamp_trunc``), without the schema where the dialect's grammar takes it for a table's; Spark's
plans have Spark's own names. A policy has the name that its author knows.
"""

from __future__ import annotations

from collections.abc import Iterator

from govtool.functions.facts import LINES


def squashed(name: str) -> str:
    """A name without its underscores: parsers of SQL split the same function's name in different places."""
    return name.lower().replace("_", "")


def _aliases() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in LINES:
        if line.is_alias:
            parser, *written = line.names
            for one in written:
                found.setdefault(squashed(one), set()).add(squashed(parser))
    return {name: frozenset(parsed) for name, parsed in found.items()}


ALIASES = _aliases()
"""Parsers' names of functions, by those that users write; both without underscores."""


def spellings(function: str) -> frozenset[str]:
    """The names by which a function may be meant: its own, that of its last part, what parsers call it.

    >>> sorted(spellings("dbo.mask_email")), sorted(spellings("substr"))
    (['dbo.maskemail', 'maskemail'], ['substr', 'substring'])
    """
    own = squashed(function)
    last = own.rpartition(".")[2]
    return frozenset((own, last)) | (ALIASES.get(own, frozenset()) if own == last else frozenset())


def is_same(one: str, other: str) -> bool:
    """Return whether two names may be of the same function; of two with schemas, neither may be of another schema.

    >>> is_same("substr", "substring"), is_same("ltrim", "rtrim"), is_same("ltrim", "trim")
    (True, False, True)
    >>> is_same("dbo.mask", "mask"), is_same("dbo.mask", "db.dbo.mask"), is_same("dbo.mask", "etl.mask")
    (True, True, False)
    """
    a, b = squashed(one), squashed(other)
    if "." in a or "." in b:
        return f".{a}".endswith(f".{b}") or f".{b}".endswith(f".{a}")
    return a == b or a in ALIASES.get(b, ()) or b in ALIASES.get(a, ())


def known_names() -> Iterator[str]:
    """Functions that databases have, by the names above and those of sqlglot's dialects."""
    from sqlglot.dialects.dialect import Dialect

    for line in LINES:
        yield from line.names
    for dialect in ("", *Dialect.classes):
        if dialect != "dialect":
            parser = Dialect.get_or_raise(dialect).parser_class
            yield from (name.lower() for name in (*parser.FUNCTIONS, *parser.FUNCTION_PARSERS))
