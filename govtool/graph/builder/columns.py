"""Arrow batches of derivations to number columns: every string interned once, everything else numpy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

_SCALARS = ("target", "target_kind", "mode", "status", "namespace")
STATEMENT_TEXTS = (
    "fingerprint", "kind", "dialect", "file", "source", "how", "session", "text", "run", "principal", "first_seen",
    "last_seen", "min_group_of", "places", "literals",
)  # fmt: skip
"""Texts of a derivation about its statement."""
_EDGE_TEXT = ("source_dataset", "source_path", "target_path", "functions", "reason")
NONE = 0
"""The id of an absent string."""


class Strings:
    """Interned strings; id 0 is the absent one.

    Args:
        texts: Those known at first: their ids are their places, from 1 on; the first one stands for the absent one.
    """

    def __init__(self, texts: Sequence[str] = ("",)) -> None:
        self.texts: list[str] = list(texts)
        self._ids: dict[str | None, int] = {text: number for number, text in enumerate(self.texts) if number}
        self._ids[None] = NONE

    def add(self, text: str | None) -> int:
        """The id of a string."""
        found = self._ids.get(text)
        if found is None:
            assert text is not None
            found = self._ids[text] = len(self.texts)
            self.texts.append(text)
        return found

    def numbers(self, array: Any) -> Any:
        """The ids of an Arrow array of strings, as int32."""
        import numpy as np
        import pyarrow as pa

        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        ids = np.array([self.add(text) for text in array.dictionary.to_pylist()] + [NONE], np.int32)
        return ids[numbers_of(array.indices, len(ids) - 1)]


DTYPES = {
    **{f"d.{name}": "i4" for name in (*_SCALARS, *STATEMENT_TEXTS)},
    **dict.fromkeys(("d.line", "d.count", "d.min_group"), "i8"),
    "d.complete": "?",
    **dict.fromkeys(("o.derivation", "e.derivation", "g.derivation", "r.derivation"), "i4"),
    **{f"e.{name}": "i4" for name in _EDGE_TEXT},
    "e.kind": "u1",
    "e.arm": "i4",
    "e.star": "?",
    "e.masking": "?",
    **dict.fromkeys(("o.path", "o.type", "g.json", "r.dataset", "r.path"), "i4"),
}
"""The columns: ``d.*`` per derivation, ``e.*`` per edge, ``o.*`` per output, ``g.*`` per diagnostic, ``r.*`` per
reference. Those of type ``i4`` are ids of strings, but for ``e.arm`` and the numbers of derivations."""
TEXTS = tuple(
    name for name, dtype in DTYPES.items() if dtype == "i4" and name != "e.arm" and not name.endswith(".derivation")
)
"""The columns of string ids."""


class ColumnCollector:
    """Gathers batches; ``columns`` then returns whole columns as numpy arrays of string ids and numbers."""

    def __init__(self) -> None:
        self.strings = Strings()
        self.derivations = 0
        self._parts: dict[str, list[Any]] = {name: [] for name in DTYPES}

    def add(self, table: Any) -> None:
        """Take in one table of ``govtool.model.columnar``."""
        for _ in self.batches(table):
            pass

    def batches(self, table: Any) -> Iterator[float]:
        """Take in one table, batch by batch; yields the share of it that is in."""
        done = 0
        for batch in table.to_batches():
            if batch.num_rows:
                self._batch(batch)
            done += batch.num_rows
            yield done / max(1, table.num_rows)

    def columns(self) -> dict[str, Any]:
        """The columns of ``DTYPES``, by name; the collector keeps nothing of them."""
        import numpy as np

        found = {}
        for name, dtype in DTYPES.items():
            parts = self._parts.pop(name)
            found[name] = np.concatenate(parts) if parts else np.empty(0, dtype)
        return found

    def _batch(self, batch: Any) -> None:
        import numpy as np

        base = self.derivations
        self.derivations += batch.num_rows
        for name in (*_SCALARS, *STATEMENT_TEXTS):
            self._put(f"d.{name}", self._text(batch.column(name)))
        for name in ("line", "count", "min_group"):
            self._put(f"d.{name}", numbers_of(batch.column(name)))
        self._put("d.complete", _booleans(batch.column("columns_complete")))
        rows = np.arange(base, self.derivations)
        for prefix, name, put in (
            ("o", "columns", self._columns),
            ("e", "edges", self._edges),
            ("g", "diagnostics", self._diagnostics),
        ):
            array = batch.column(name)
            counts = np.diff(numbers_of(array.offsets))
            self._put(f"{prefix}.derivation", np.repeat(rows, counts))
            put(array.flatten())
        self._references(batch.column("references"), rows)

    def _columns(self, items: Any) -> None:
        fields = fields_of(items)
        self._put("o.path", self._text(fields["path"]))
        self._put("o.type", self._text(fields["type"]))

    def _edges(self, items: Any) -> None:
        fields = fields_of(items)
        for name in _EDGE_TEXT:
            self._put(f"e.{name}", self._text(fields[name]))
        self._put("e.kind", numbers_of(fields["kind"]))
        self._put("e.arm", numbers_of(fields["arm"]))
        self._put("e.star", _booleans(fields["star"]))
        self._put("e.masking", _booleans(fields["masking"]))

    def _references(self, array: Any, rows: Any) -> None:
        import numpy as np

        self._put("r.derivation", np.repeat(rows, numbers_of(array.value_lengths())))
        fields = fields_of(array.flatten())
        for name in ("dataset", "path"):
            self._put(f"r.{name}", self._text(fields[name]))

    def _diagnostics(self, items: Any) -> None:
        import numpy as np

        texts = [json.dumps(item, ensure_ascii=False, sort_keys=True) for item in items.to_pylist()]
        self._put("g.json", np.array([self.strings.add(text) for text in texts], np.int32))

    def _put(self, name: str, values: Any) -> None:
        self._parts[name].append(values.astype(DTYPES[name], copy=False))

    def _text(self, array: Any) -> Any:
        return self.strings.numbers(array)


def fields_of(items: Any) -> dict[str, Any]:
    """The fields of an Arrow array of structs by name."""
    names = [field.name for field in items.type]
    return dict(zip(names, items.flatten(), strict=True))


def numbers_of(array: Any, absent: int = 0) -> Any:
    """An Arrow array of numbers as numpy, with another number where there is none.

    What Arrow has for it (``to_numpy``, ``fill_null``) imports pandas where that is installed: a third of a second.
    """
    import numpy as np

    _, data = array.buffers()
    numbers = np.frombuffer(data or b"", array.type.to_pandas_dtype())[array.offset : array.offset + len(array)]
    return np.where(_valid(array), numbers, absent) if array.null_count else numbers


def _valid(array: Any) -> Any:
    return _bits(array.buffers()[0], array)


def _bits(data: Any, array: Any) -> Any:
    """The bits of an Arrow array in one of its buffers."""
    import numpy as np

    end = array.offset + len(array)
    return np.unpackbits(np.frombuffer(data or b"", np.uint8), count=end, bitorder="little")[array.offset :].view(bool)


def numbered(*columns: Any) -> Any:
    """Number the distinct rows of several columns; the numbers are in the order of the rows."""
    import numpy as np

    number = np.unique(columns[0], return_inverse=True)[1].astype(np.int64)
    for column in columns[1:]:
        ids = np.unique(column, return_inverse=True)[1].astype(np.int64)
        width = int(ids.max()) + 1 if len(ids) else 1
        number = np.unique(number * width + ids, return_inverse=True)[1].astype(np.int64)
    return number


def _booleans(array: Any) -> Any:
    """An Arrow array of truth values as numpy; false where there is none."""
    values = _bits(array.buffers()[1], array)
    return values & _valid(array) if array.null_count else values


def numbered_pairs(functions: Any, reasons: Any) -> tuple[Any, Any, Any]:
    """Number the distinct pairs of functions and reason; per pair its functions and its reason."""
    import numpy as np

    width = int(reasons.max()) + 1 if len(reasons) else 1
    known, label = np.unique(functions.astype(np.int64) * width + reasons, return_inverse=True)
    return label, known // width, known % width
