"""The columns that an UPDATE or a MERGE really sets: not those that it hands on as they are, which plans list too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from govtool.capture.spark import plan as p
from govtool.capture.spark.identity import column_path


def changed_values(pairs: Sequence[tuple[str, p.Expression]], own: Sequence[p.Named]) -> tuple[p.Assignment, ...]:
    """Values for columns, without those that hand the column itself on; of a struct only the fields that change.

    Args:
        pairs: Names of columns with their values.
        own: The target's columns; none for an INSERT.
    """
    ids = {column.name.lower(): column.id for column in own}
    found: list[p.Assignment] = []
    for name, value in pairs:
        number = ids.get(name.lower())
        base = p.Attribute(number, name) if number is not None else None
        found.extend(_parts(column_path(name), value, base))
    return tuple(found)


def _parts(path: str, value: p.Expression, own: p.Expression | None) -> Iterator[p.Assignment]:
    if own is None:
        yield p.Assignment(path, value)
    elif not _same(value, own):
        fields = value.fields if isinstance(value, p.StructValue) else ()
        if any(_same(part, p.Field(own, name)) for name, part in fields):
            for name, part in fields:
                yield from _parts(f"{path}.{name}", part, p.Field(own, name))
        else:
            yield p.Assignment(path, value)


def _same(value: p.Expression, own: p.Expression) -> bool:
    """Return whether a value is a column, or a field of one, as it is; casts to its own type are nobody's."""
    while isinstance(value, p.Apply) and value.name in ("", "cast") and len(value.arguments) == 1:
        value = value.arguments[0]
    match value, own:
        case p.Attribute(), p.Attribute():
            return value.id == own.id
        case p.Field(), p.Field():
            return value.step == own.step and _same(value.base, own.base)
        case _:
            return False
