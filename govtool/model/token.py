r"""Record tokens: the identity of one source record, with one parser and one printer.

    token    = dataset "[" column "=" value {"," column "=" value} "]"     a declared key
             | dataset "@" version ":" file "/" row                        a position in one version of a dataset
             | dataset ":" row-id                                          an id that the data brings along
    dataset, version, row-id, value = bare text | "'" text with \ escapes "'"

Bare text holds no white space and none of the characters that end it. A double-quoted part of a canonical name
(``crm."Odd Name"``) may stand in a bare dataset or column. The printer quotes whatever is not bare, so that every token
is one printable line and reads back as itself.

    >>> parse_token("crm.users[id=42]")
    KeyToken(dataset='crm.users', key=(('id', '42'),))
    >>> str(PositionToken("s3://lake/views", "7", 3, 1200))
    's3://lake/views@7:3/1200'
    >>> str(KeyToken("crm.users", (("name", "O'Neil, Jr"),)))
    "crm.users[name='O\\'Neil, Jr']"

Source: the record-level capture design, "Token".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from govtool.errors import UsageError
from govtool.names import current_id

MAX_TOKEN = 65536
"""The longest text that is read as a token, in characters."""

LEAF_BITS, FILE_BITS, ROW_BITS = 10, 19, 34
"""The parts of a packed record id, from the left; together 63 bits, so that an id is never negative."""

# Possessive, or an unbalanced text of many quotes is tried in every way there is.
_NAME = r"""(?:"(?:[^"]|"")*+"|[^\s"'\\{end}])++"""
_DATASET = re.compile(_NAME.format(end=r"\[\]@"))
_PLAIN_DATASET = re.compile(_NAME.format(end=r"\[\]@:"))
_COLUMN = re.compile(_NAME.format(end=r"\[\]=,"))
_VERSION = re.compile(r"""[^\s"'\\\[\]@:/,]+""")
_VALUE = re.compile(r"""[^\s"'\\\[\],=]+""")
_NUMBER = re.compile(r"[0-9]{1,19}")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*+)'", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'"}
_LONG = {text: f"\\{letter}" for letter, text in _SHORT.items()}


@dataclass(frozen=True, slots=True, order=True)
class KeyToken:
    """A record named by the values of its declared key.

    Attributes:
        dataset: The dataset's id, as the graph writes it.
        key: Column and value as text, one pair a key column, sorted by column. The type is the column's own.
    """

    dataset: str
    key: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        """Sort the key; refuse a text that cannot be part of a token."""
        names = [name for name, _ in self.key]
        if not self.dataset or not names or not all(names) or len(set(names)) < len(names):
            raise UsageError("a key token needs a dataset and distinct key columns", code="usage.bad-token")
        object.__setattr__(self, "key", tuple(sorted(self.key)))

    def __str__(self) -> str:
        """Return the token's text."""
        pairs = ",".join(f"{_written(name, _COLUMN)}={_written(value, _VALUE)}" for name, value in self.key)
        return f"{_written(self.dataset, _DATASET)}[{pairs}]"


@dataclass(frozen=True, slots=True, order=True)
class PositionToken:
    """A record named by where it stands in one version of its dataset.

    Attributes:
        dataset: The dataset's id, as the graph writes it.
        version: The version's id: a table version or the identity of the files.
        file: The file's ordinal in that version, from 0.
        row: The row's index in that file, from 0.
    """

    dataset: str
    version: str
    file: int
    row: int

    def __post_init__(self) -> None:
        """Refuse a text that cannot be part of a token."""
        if not self.dataset or not self.version or not (0 <= self.file < 1 << 63 and 0 <= self.row < 1 << 63):
            raise UsageError("a position token needs a dataset, a version, a file and a row", code="usage.bad-token")

    def __str__(self) -> str:
        """Return the token's text."""
        return f"{_written(self.dataset, _DATASET)}@{_written(self.version, _VERSION)}:{self.file}/{self.row}"


@dataclass(frozen=True, slots=True, order=True)
class NamedToken:
    """A record named by an id that its data brings along, such as a column ``_tok`` or a line's number.

    Attributes:
        dataset: The relation's name.
        row_id: The id, unique in the relation.
    """

    dataset: str
    row_id: str

    def __post_init__(self) -> None:
        """Refuse a text that cannot be part of a token."""
        if not self.dataset or not self.row_id:
            raise UsageError("a token needs a dataset and a row id", code="usage.bad-token")

    def __str__(self) -> str:
        """Return the token's text."""
        return f"{_written(self.dataset, _PLAIN_DATASET)}:{_written(self.row_id, _VALUE)}"


Token = KeyToken | PositionToken | NamedToken
"""The identity of one source record."""


def parse_token(text: str) -> Token:
    """Read one token.

    Raises:
        UsageError: The text is no token; ``location`` is the column, from 1, of the first character that does not fit.
    """
    if len(text) > MAX_TOKEN:
        raise UsageError(f"a token of {len(text):,} characters, {MAX_TOKEN:,} at most", code="usage.bad-token")
    reader = _Reader(text)
    plain = _Reader(text)
    dataset = current_id(reader.text(_DATASET, "a dataset"))
    token: Token
    if reader.skip("["):
        token = KeyToken(dataset, reader.pairs())
    elif reader.skip("@"):
        token = reader.position(dataset)
    else:
        dataset = plain.text(_PLAIN_DATASET, "a dataset")
        plain.expect(":")
        token = NamedToken(dataset, plain.text(_VALUE, "a row id"))
        reader = plain
    reader.end()
    return token


def pack(leaf: int, file: int, row: int) -> int:
    """Return a record's id in memory: leaf, file ordinal and row index in one non-negative int64.

    Raises:
        UsageError: A part has more bits than its share.
    """
    if not (0 <= leaf < 1 << LEAF_BITS and 0 <= file < 1 << FILE_BITS and 0 <= row < 1 << ROW_BITS):
        raise UsageError(
            f"record {file}/{row} of leaf {leaf} does not fit an id of {LEAF_BITS}+{FILE_BITS}+{ROW_BITS} bits",
            code="usage.record-id",
        )
    return (leaf << FILE_BITS | file) << ROW_BITS | row


def unpack(packed: int) -> tuple[int, int, int]:
    """Return the leaf, the file ordinal and the row index of a packed id; the inverse of ``pack``."""
    return packed >> FILE_BITS + ROW_BITS, *file_and_row(packed)


def record_id(file: int, row: int) -> int:
    """Return the id of a record among those of one input: its file's ordinal and its row, without a leaf."""
    return file << ROW_BITS | row


def file_and_row(packed: int) -> tuple[int, int]:
    """Return the file ordinal and the row index of a packed id, whatever its leaf."""
    return packed >> ROW_BITS & (1 << FILE_BITS) - 1, packed & (1 << ROW_BITS) - 1


class _Reader:
    """A position in a token's text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def skip(self, mark: str) -> bool:
        """Step over ``mark`` if it is next."""
        found = self._text.startswith(mark, self._at)
        self._at += len(mark) if found else 0
        return found

    def expect(self, mark: str) -> None:
        """Step over ``mark``."""
        if not self.skip(mark):
            raise self._error(f"expected '{mark}'")

    def end(self) -> None:
        """Refuse what follows the token."""
        if self._at < len(self._text):
            raise self._error("expected the end of the token")

    def text(self, bare: re.Pattern[str], what: str) -> str:
        """Read bare or quoted text."""
        quoted = _QUOTED.match(self._text, self._at)
        found = quoted or bare.match(self._text, self._at)
        if found is None or not (found[1] if quoted else found[0]):
            raise self._error(f"expected {what}")
        read = _ESCAPE.sub(self._unescaped, found[1]) if quoted else found[0]
        if not quoted and not read.isprintable():
            raise self._error(f"{what} with characters that must be quoted")
        self._at = found.end()
        return read

    def value(self) -> str:
        """Read the value of a key column, which may be empty in quotes."""
        return "" if self.skip("''") else self.text(_VALUE, "a value")

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Read ``column=value`` pairs and the closing bracket."""
        pairs: dict[str, str] = {}
        while not pairs or self.skip(","):
            start = self._at
            name = self.text(_COLUMN, "a key column")
            if name in pairs:
                self._at = start
                raise self._error(f"key column '{name}' twice")
            self.expect("=")
            pairs[name] = self.value()
        self.expect("]")
        return tuple(pairs.items())

    def position(self, dataset: str) -> PositionToken:
        """Read the version, the file ordinal and the row index."""
        version = self.text(_VERSION, "a version")
        self.expect(":")
        file = self._number("a file ordinal")
        self.expect("/")
        return PositionToken(dataset, version, file, self._number("a row index"))

    def _number(self, what: str) -> int:
        found = _NUMBER.match(self._text, self._at)
        if found is None or int(found[0]) >= 1 << 63 or (found[0][0] == "0" and found[0] != "0"):
            raise self._error(f"expected {what}")
        self._at = found.end()
        return int(found[0])

    def _unescaped(self, found: re.Match[str]) -> str:
        code = found[1]
        if code in _SHORT:
            return _SHORT[code]
        point = int(code[1:], 16) if len(code) > 1 else -1
        if not 0 <= point <= 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            raise self._error(f"escape '\\{code}' stands for no character")
        return chr(point)

    def _error(self, message: str) -> UsageError:
        return UsageError(
            f"{message} in token {_shown(self._text)}",
            code="usage.bad-token",
            location=f"column {self._at + 1}",
            hint="a token is DATASET[key=value,…], DATASET@VERSION:FILE/ROW or DATASET:ID; quote others in '…'",
        )


def _written(text: str, bare: re.Pattern[str]) -> str:
    return text if bare.fullmatch(text) and text.isprintable() else _quoted(text)


def _quoted(text: str) -> str:
    return "'" + "".join(_escaped(character) for character in text) + "'"


def _escaped(character: str) -> str:
    if character in _LONG:
        return _LONG[character]
    if character.isprintable():
        return character
    point = ord(character)
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def _shown(text: str) -> str:
    return _quoted(text if len(text) <= 80 else text[:79] + "…")
