"""Bags: GROUP, COGROUP and FLATTEN over DataFrames.

A bag is an array of structs, one a row. It is made by one aggregation, ``collect_list``, whose provenance is exact: a
group exists because of its rows, δ(Σ A + Σ B), and each nested row keeps its own annotation. So a row that comes out of
``flatten`` has that of its group times its own, as after Pig's COGROUP and FLATTEN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from govtool.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def cogroup(*frames: DataFrame, by: str | Sequence[str], names: Sequence[str] | None = None) -> DataFrame:
    """Group several DataFrames by their common columns: one row a key, with a bag of rows for each DataFrame.

    Rows whose key is NULL form one group, as Spark's GROUP BY has it. A bag is empty where its DataFrame has no such
    key. The order within a bag is not defined.

    Args:
        frames: The DataFrames; with one, this is GROUP.
        by: The columns of the key, which each DataFrame has.
        names: Names of the bags; by default ``bag_1``, ``bag_2`` …

    Returns:
        The columns of the key, then a bag for each DataFrame, with all of its columns.

    Raises:
        UsageError: A column is missing, a name is there twice, or there is nothing to group (``usage.arguments``).
    """
    from pyspark.sql import functions as f

    keys = [by] if isinstance(by, str) else list(by)
    bags = list(names) if names is not None else [f"bag_{number}" for number in range(1, len(frames) + 1)]
    _check(frames, keys, bags)
    # Fields are taken by their places: names of columns may hold dots.
    kinds = [frame.schema for frame in frames]
    tagged = [
        frame.select(
            *(_column(frame, key).alias(key) for key in keys),
            *(
                f.struct(*(_column(frame, name).alias(name) for name in frame.columns)).alias(bag)
                if number == place
                else f.lit(None).cast(kinds[place]).alias(bag)
                for place, bag in enumerate(bags)
            ),
        )
        for number, frame in enumerate(frames)
    ]
    united = tagged[0]
    for other in tagged[1:]:
        united = united.unionAll(other)
    return united.groupBy(*(_column(united, key) for key in keys)).agg(
        *(f.collect_list(_column(united, bag)).alias(bag) for bag in bags)
    )


def flatten(frame: DataFrame, bag: str, *, outer: bool = False) -> DataFrame:
    """One row for each row of a bag: the other columns, then those of the bag.

    Args:
        frame: A DataFrame with a bag.
        bag: The name of the bag.
        outer: Keep rows whose bag is empty, with NULL in the columns of the bag. Pig's FLATTEN drops them.

    Raises:
        UsageError: There is no such bag, or it is no array of structs (``usage.arguments``).
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, StructType

    kinds = {each.name: each.dataType for each in frame.schema.fields}
    kind = kinds.get(bag)
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        raise UsageError(f"{bag} is no bag of this DataFrame", code="usage.arguments", hint="cogroup makes bags")
    others = [name for name in frame.columns if name != bag]
    fields = kind.elementType.names
    explode = f.explode_outer if outer else f.explode
    rows = frame.select(*(_column(frame, name) for name in others), explode(_column(frame, bag)).alias(bag))
    nested = _column(rows, bag)
    return rows.select(
        *(_column(rows, name) for name in others), *(nested.getField(name).alias(name) for name in fields)
    )


def _column(frame: DataFrame, name: str) -> Column:
    """A column by its whole name, dots and all."""
    return frame["`" + name.replace("`", "``") + "`"]


def _check(frames: Sequence[DataFrame], keys: Sequence[str], bags: Sequence[str]) -> None:
    if not frames or not keys:
        raise UsageError("there is nothing to group", code="usage.arguments", hint='cogroup(a, b, by="key")')
    if len(bags) != len(frames):
        raise UsageError(f"{len(frames)} DataFrames and {len(bags)} names of bags", code="usage.arguments")
    twice = sorted({name for name in (*keys, *bags) if [*keys, *bags].count(name) > 1})
    if twice:
        raise UsageError(f"{', '.join(twice)} would be there twice", code="usage.arguments", hint="names=[…]")
    for number, frame in enumerate(frames, 1):
        lost = [key for key in keys if key not in frame.columns]
        if lost:
            raise UsageError(
                f"DataFrame {number} has no column {', '.join(lost)}; it has {', '.join(frame.columns)}",
                code="usage.arguments",
            )
