"""Text within fragments: found and replaced in any table, at any depth."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

from govtool.errors import UsageError
from govtool.model.parquet import read_parquet, refusing_damage, write_parquet
from govtool.names import current_id, former_id, former_text, renewed_text
from govtool.redaction import SECRET

SHORTEST = 4
"""Characters that a text must have: a shorter one would be found everywhere."""


_PARQUET = b"PAR1"
"""The first and the last bytes of a Parquet file."""
_BETWEEN_FRAGMENTS = _PARQUET * 2


class TextForms:
    """Texts to look for, in every form in which a store may hold them: as they are, in JSON, in SQL, in a URL.

    Args:
        texts: What to look for; upper and lower case are the same.

    Raises:
        UsageError: There is none, or one is too short (``usage.text``).
    """

    def __init__(self, texts: Iterable[str]) -> None:
        found = [text for text in texts if text]
        if not found or min(map(len, found)) < SHORTEST:
            raise UsageError(
                f"a text to remove needs at least {SHORTEST} characters",
                code="usage.text",
                hint="write each text on a line of its own: --text-file FILE, or - for stdin",
            )
        self.forms = sorted({form for text in found for form in _forms(text)}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self.forms)), re.IGNORECASE)

    def in_text(self, text: str) -> bool:
        """Return whether a text holds one of them."""
        return self._pattern.search(text) is not None

    def in_bytes(self, data: bytes) -> bool:
        """Return whether text in UTF-8 holds one of them."""
        return self.in_text(data.decode("utf-8", "replace"))

    def replaced(self, text: str) -> str:
        """The text with ``***`` in place of each."""
        return self._pattern.sub(SECRET, text)

    def in_fragment(self, data: bytes) -> bool:
        """Return whether a fragment holds one of them; in bytes that are no Parquet file, anywhere.

        Columns are looked through as arrays, without a Python object for each value.
        """
        table = _table(data)
        if table is None:
            return self.in_bytes(data)
        metadata = (table.schema.metadata or {}).values()
        if any(map(self.in_bytes, metadata)) or any(map(self.in_text, table.schema.names)):
            return True
        return any(
            self._in_array(leaf) for column in table.columns for chunk in column.chunks for leaf in leaves(chunk)
        )

    @staticmethod
    def can_read(data: bytes) -> bool:
        """Return whether a fragment can be looked through: no Parquet file that is damaged."""
        return not data.startswith(_PARQUET) or _table(data) is not None

    def in_object(self, data: bytes) -> bool:
        """Return whether an object holds one of them: a fragment, or a pack of several."""
        pieces = data.split(_BETWEEN_FRAGMENTS)
        last = len(pieces) - 1
        return any(
            self.in_fragment((_PARQUET if i else b"") + piece + (_PARQUET if i < last else b""))
            for i, piece in enumerate(pieces)
        )

    def _in_array(self, leaf: Any) -> bool:
        import pyarrow.compute as pc

        return any(pc.any(pc.match_substring(leaf, form, ignore_case=True)).as_py() for form in self.forms)

    def without(self, data: bytes) -> tuple[bytes, int] | None:
        """A fragment with ``***`` in place of each text, and its rows; None if it is no Parquet file."""
        import pyarrow as pa

        table = _table(data)
        if table is None:
            return None
        metadata = {name: self._value(value) for name, value in (table.schema.metadata or {}).items()}
        rows = [self._value(row) for row in table.to_pylist()]
        made = pa.Table.from_pylist(rows, schema=table.schema.with_metadata(metadata or None))
        return write_parquet(made), made.num_rows

    def _value(self, value: Any) -> Any:
        """A value of any type, with all strings in it replaced."""
        if isinstance(value, str):
            return self.replaced(value)
        if isinstance(value, bytes):
            found = value.decode("utf-8", "surrogateescape")
            return self.replaced(found).encode("utf-8", "surrogateescape")
        if isinstance(value, dict):
            return {name: self._value(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._value(item) for item in value)
        return value


def _table(data: bytes) -> Any:
    """The table of a Parquet file; None if it is not one, or damaged."""
    try:
        table = read_parquet(data)
        table.validate(full=True)
    except Exception:  # of a damaged file: what pyarrow and Python make of it
        return None
    return table


def _forms(text: str) -> set[str]:
    return {
        text,
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        text.replace("'", "''"),
        former_id(text),
        former_text(text),
        current_id(text),
        renewed_text(text),
        *(written(text, safe=safe) for written in (quote, quote_plus) for safe in ("", "/")),
    }


def leaves(array: Any) -> Iterator[Any]:
    """The arrays of text within an array: in lists, structs, maps and dictionaries, however deep."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        yield from leaves(array.dictionary)
    elif pa.types.is_struct(kind):
        for inner in array.flatten():
            yield from leaves(inner)
    elif pa.types.is_map(kind):
        yield from leaves(array.keys)
        yield from leaves(array.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from leaves(array.flatten())
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield array
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        yield pa.array([value and value.decode("utf-8", "replace") for value in array.to_pylist()], pa.string())


@refusing_damage("rows of a fragment cannot be removed")
def rows_without(data: bytes, column: str, values: Sequence[str]) -> tuple[bytes, int] | None:
    """A fragment without the rows in which a column has one of some values; None if there are none.

    Raises:
        IntegrityError: It is no Parquet file with that column.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    table = read_parquet(data)
    found = pc.is_in(table[column], pa.array(list(values), table[column].type))
    if not pc.any(found).as_py():
        return None
    left = table.filter(pc.invert(found))
    return write_parquet(left), left.num_rows
