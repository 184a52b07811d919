"""Fragments of earlier versions under the names of today: ``file//data/x`` is read as ``file:///data/x``.

A fragment is never rewritten. Whatever reads one renames its datasets by ``names.current_id``: row by row, or as Arrow
columns here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from govtool.names import FORMER, current_id, renewed_text

_DATASETS = ("target", "dataset", "source_dataset", "candidates", "inputs", "outputs", "output")
"""Columns and fields of fragments that hold ids of datasets, or lists of them."""
_TEXTS = ("file", "job")
"""Those that hold text with an id in it: the job of a run of Spark is called after its script and target."""
_NEEDED: Mapping[Callable[[str], str], bytes] = {current_id: b"/", renewed_text: b"//"}
"""What is in every text that a function changes."""
_RENAMES: Mapping[str, Callable[[str], str]] = {
    **dict.fromkeys(_DATASETS, current_id),
    **dict.fromkeys(_TEXTS, renewed_text),
}


def with_current_names(table: Any) -> Any:
    """A ``pyarrow.Table`` of a fragment with the ids of today; the same table where none is of an earlier version."""
    for number, field in enumerate(table.schema):
        column = table.column(number)
        chunks = [_renamed(chunk, field.name) for chunk in column.chunks]
        if any(new is not old for new, old in zip(chunks, column.chunks, strict=True)):
            import pyarrow as pa

            table = table.set_column(number, field, pa.chunked_array(chunks, field.type))
    return table


def _renamed(array: Any, name: str) -> Any:
    """An array with the ids of today in the fields that hold ids; itself where nothing changes."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_list(kind):
        if array.offset and array.null_count:
            array = pa.concat_arrays([array])  # a mask does not go with the offsets of a slice
        values = _renamed(array.values, name)
        if values is array.values or values.equals(array.values):
            return array
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=mask)
    if pa.types.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        old = [array.field(number) for number in range(kind.num_fields)]
        new = [_renamed(each, field.name) for each, field in zip(old, fields, strict=True)]
        if all(one is other for one, other in zip(new, old, strict=True)):
            return array
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(new, fields=fields, mask=mask)
    return _texts(array, _RENAMES[name]) if name in _RENAMES else array


def _texts(array: Any, rename: Callable[[str], str]) -> Any:
    import pyarrow as pa

    is_coded = pa.types.is_dictionary(array.type)
    texts = array.dictionary if is_coded else array
    if not pa.types.is_string(texts.type) or not _holds(texts, _NEEDED[rename]):
        return array
    import pyarrow.compute as pc  # importing it takes as long as reading a fragment

    if not pc.any(pc.match_substring_regex(texts, FORMER)).as_py():
        return array
    named = pa.array([text and rename(text) for text in texts.to_pylist()], texts.type)
    if named.equals(texts):
        return array
    # Two spellings of one name become one entry of the dictionary.
    return named.take(array.indices).dictionary_encode().cast(array.type) if is_coded else named


def _holds(texts: Any, part: bytes) -> bool:
    """Return whether a part is in an array of texts, or where two of them meet; perhaps only beside a slice of it."""
    data = texts.buffers()[2]
    return data is not None and part in data.to_pybytes()
