"""Sets and look-ups of function facts, read from the table.

Names in the sets are lower-case and exact. `govtool.functions.names` matches a name as a user writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from govtool.functions.table import NODES, TABLE

_VALUE_FACTS: Final = ("keyed", "hash", "mask", "partial", "keeps", "choice")
_ROW_FACTS: Final = (
    "aggregate",
    "member",
    "collects",
    "ordered",
    "approximate",
    "number",
    "rows",
    "window",
    "rank",
    "row",
)
_FROM_FACTS: Final = ("series", "table", "single")
_READ_FACTS: Final = ("elsewhere",)
_REPEAT_FACTS: Final = ("random", "clock", "session", "generates")
FACTS: Final = frozenset((*_VALUE_FACTS, *_ROW_FACTS, *_FROM_FACTS, *_READ_FACTS, *_REPEAT_FACTS))
"""The words that the table may hold besides ``undoes=`` and positions of arguments."""

ANY_DIALECT: Final = ""
VALUE: Final = "value"
KEY: Final = "key"


class FunctionRow(NamedTuple):
    """A line of the table."""

    names: tuple[str, ...]
    """The functions; of a line with ``=`` the parser's name is the first."""
    is_alias: bool
    """All names are of one function."""
    facts: frozenset[str]
    undoes: tuple[str, ...]
    """The functions of which these are the inverse."""
    positions: Mapping[tuple[str, str], int]
    """Positions of arguments, from 1, by dialect (empty: any) and argument (``value``, ``key``); 0: there is none."""


class ArgumentPositions(NamedTuple):
    """Positions of a function's arguments, from 1; 0 where there is no such argument."""

    value: int
    key: int


def lines(text: str = TABLE) -> Iterator[FunctionRow]:
    """Read the table.

    Raises:
        ValueError: a line holds no name, or a fact that does not exist.
    """
    for row in text.splitlines():
        content = row.partition("#")[0].strip()
        if content:
            yield _line(content)


def _line(content: str) -> FunctionRow:
    head, _, tail = content.partition(":")
    parser, equals, others = head.partition("=")
    names = (*parser.split(), *others.split())
    if not names or (equals and len(parser.split()) != 1):
        raise ValueError(f"functions: {content!r} names no function")
    facts: set[str] = set()
    undoes: tuple[str, ...] = ()
    positions: dict[tuple[str, str], int] = {}
    for word in tail.split():
        key, assigned, value = word.partition("=")
        dialect, _, argument = key.rpartition("/")
        if word in FACTS:
            facts.add(word)
        elif key == "undoes" and value:
            undoes = tuple(value.split(","))
        elif assigned and argument in (VALUE, KEY) and value.isdigit():
            positions[dialect, argument] = int(value)
        else:
            raise ValueError(f"functions: {word!r} in {content!r} is no fact")
    return FunctionRow(names, bool(equals), frozenset(facts), undoes, positions)


LINES: Final = tuple(lines())
"""The table."""


def having(*facts: str) -> frozenset[str]:
    """Return the functions that have all of some facts.

    >>> sorted(having("aggregate", "number", "approximate"))
    ['approx_count_distinct', 'approx_distinct', 'hll', 'uniq']
    """
    found = _by_fact.get(facts[0], frozenset())
    for fact in facts[1:]:
        found &= _by_fact.get(fact, frozenset())
    return found


def _grouped() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in LINES:
        for fact in line.facts:
            found.setdefault(fact, set()).update(line.names)
    return {fact: frozenset(names) for fact, names in found.items()}


_by_fact: Final = _grouped()

KEYED: Final = having("keyed")
"""With a key: HMAC, encryption, tokenisation."""

HASH: Final = having("hash")
"""Without a key: anyone can hash a guess and compare."""

MASK: Final = having("mask")
"""Characters are blotted out."""

MASKING: Final = KEYED | HASH | MASK
"""The functions that OpenLineage's ``masking`` flag stands for. What a policy accepts as declassification is the
policy's to say."""

PARTIAL: Final = having("partial")
"""A real part of the value stays."""

UNDOES: Final = {name: line.undoes for line in LINES if line.undoes for name in line.names}
"""Inverses: the functions that each undoes."""

REVERSIBLE: Final = frozenset(name for undone in UNDOES.values() for name in undone)
"""Masking that has an inverse."""

MEMBERS: Final = having("member")
"""Aggregates and window functions that hand on a real value, or all of them: ``max(ssn)`` is someone's number."""

REAL: Final = MEMBERS | PARTIAL | having("keeps")
"""The result holds a real value, whole or in part."""

CHOICES: Final = having("choice")
"""The result is one of the arguments."""

AGGREGATES: Final = having("aggregate")
"""One value for a group of rows."""

COLLECTING: Final = having("collects")
"""Aggregates that collect values in an array, an object or a text."""

NUMBERS: Final = having("number")
"""Aggregates that say how many rows or values there are."""

ROW_COUNTS: Final = having("rows")
"""``f(*)`` counts rows."""

RANKS: Final = having("rank")
"""Window functions whose result depends on the window alone."""

ROW_VALUES: Final = having("row")
"""Under OVER these hand on one row's value: a transformation, not an aggregation."""

NON_DETERMINISTIC: Final = having("random") | having("clock") | having("session")
"""The same call on the same data may give another result."""

GENERATORS: Final = having("generates")
"""The result is made of no data; arguments are a seed or a format."""

ELSEWHERE: Final = having("elsewhere")
"""Functions that read what their arguments name: a query in a text, a table, a dictionary."""

SERIES: Final = having("series")
"""Set-returning functions of one column, which is named after the function or its alias."""

TABLES: Final = having("table")
"""Table functions that dialects bring along: the values they return come from their arguments."""

SINGLE: Final = having("single")
"""Table functions that return as many rows for one value as for another."""


def _node_names() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for row in NODES.strip().splitlines():
        node, _, pairs = row.partition(": ")
        split = [pair.partition("=") for pair in pairs.split()]
        found[node] = {ANY_DIALECT if dialect == "*" else dialect: name for dialect, _, name in split}
    return found


NODE_NAMES: Final = _node_names()
"""Names of functions by class of sqlglot's tree and dialect (empty: any other), where they differ."""

_POSITIONS: Final = {name: line.positions for line in LINES if line.positions for name in line.names}


def positions_of(function: str, dialect: str = ANY_DIALECT) -> ArgumentPositions | None:
    """Return the positions of the value and of the key among a keyed function's or an inverse's arguments.

    >>> positions_of("hmac"), positions_of("hmac", "clickhouse"), positions_of("aead.encrypt"), positions_of("md5")
    (ArgumentPositions(value=1, key=2), ArgumentPositions(value=2, key=3), ArgumentPositions(value=2, key=1), None)
    """
    if function not in KEYED and function not in UNDOES:
        return None
    known = _POSITIONS.get(function, {})
    value = known.get((dialect, VALUE), known.get((ANY_DIALECT, VALUE), 1))
    key = known.get((dialect, KEY), known.get((ANY_DIALECT, KEY), 2))
    return ArgumentPositions(value, key)


_AS_KEY: Final = "(key)"


def as_key(function: str) -> str:
    """Return the name in a chain of functions of a call that takes the value as its key, and so does not hide it.

    >>> as_key("hmac"), key_of(as_key("hmac")), key_of("hmac")
    ('hmac(key)', 'hmac', None)
    """
    return function + _AS_KEY


_AS_UNREAD: Final = "(body not read)"


def as_unread(function: str) -> str:
    """Return the name in a chain of functions of a routine that the graph has seen defined and could not read.

    >>> as_unread("tokenize"), unread_of(as_unread("tokenize")), unread_of("tokenize")
    ('tokenize(body not read)', 'tokenize', None)
    """
    return function + _AS_UNREAD


def unread_of(name: str) -> str | None:
    """Return the routine that could not be read; None if the name is of another function."""
    return name.removesuffix(_AS_UNREAD) if name.endswith(_AS_UNREAD) else None


def key_of(name: str) -> str | None:
    """Return the function that takes the value as its key; None if the name is of a call that takes it otherwise."""
    return name.removesuffix(_AS_KEY) if name.endswith(_AS_KEY) else None


@lru_cache(maxsize=4096)
def is_masking(functions: tuple[str, ...]) -> bool:
    """Return whether a value is hidden behind a chain of functions.

    An inverse shows again what reversible functions hid before it: of any of them, as a pair that does not fit is an
    error in most databases.

    Args:
        functions: The innermost first.

    >>> is_masking(("upper", "md5")), is_masking(("aes_encrypt", "aes_decrypt")), is_masking(("mask_show_last_n",))
    (True, False, False)
    """
    hidden: set[str] = set()
    for function in functions:
        name = _known(function, MASKING)
        if name:
            hidden.add(name)
        elif _known(function, UNDOES):
            hidden -= REVERSIBLE
    return bool(hidden)


def _known(function: str, names: Mapping[str, object] | frozenset[str]) -> str:
    """Return the name by which a set knows a function: its own or its last part; empty if there is none."""
    if function in names:
        return function
    last = function.rpartition(".")[2]
    return last if last in names else ""
