"""Facts: what people say of datasets and columns, in words of their own: owners, tags, descriptions, tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from govtool.model.parquet import read_parquet, refusing_damage, write_parquet
from govtool.names import current_id
from govtool.redaction import clean_stated

FACTS = "facts"
"""The store table whose fragments hold facts."""

MASKING_POLICY = "masking_policy"
"""The fact that a column is read through a masking policy; its value is the policy's name."""
ROW_ACCESS_POLICY = "row_access_policy"
"""The fact that rows of a dataset are hidden from some by a policy; its value is the policy's name."""

WAIVER = "waiver"
"""The fact that a comment in SQL waives a rule for a dataset; its value is the comment's text."""


class Fact(NamedTuple):
    """One statement of someone about a dataset or a column."""

    dataset: str
    """Canonical dataset id."""
    column: str | None
    """Canonical column path; None: about the dataset."""
    name: str
    """``owner``, ``tag``, ``description``, ``meta.<key>``, ``materialized``, ``masking_policy`` …"""
    value: str
    """Text; of ``meta`` JSON where it is not text."""
    how: str
    """The tool that states it: ``dbt`` …"""
    file: str
    source: str
    """The ingest's ``--source`` name: the unit of retraction."""


def encode_facts(facts: Iterable[Fact]) -> bytes:
    """Facts as Parquet, sorted, without secrets in their values; equal facts give equal bytes."""
    import pyarrow as pa

    from govtool.model.arrow_arrays import texts

    cleaned = {fact._replace(value=clean_stated(fact.name, fact.value)) for fact in facts}
    rows = sorted(cleaned, key=lambda fact: tuple(part or "" for part in fact))
    columns = list(zip(*rows, strict=True)) or [()] * len(Fact._fields)
    clean = [[v if v is None else v.encode("utf-8", "replace").decode() for v in column] for column in columns]
    arrays = [texts(column) for column in clean]
    return write_parquet(pa.Table.from_arrays(arrays, names=list(Fact._fields)), statistics=True)


@refusing_damage("a facts fragment cannot be read")
def decode_facts(data: bytes) -> list[Fact]:
    """Facts of a fragment.

    Raises:
        IntegrityError: The bytes are no facts.
    """
    facts = (Fact(**row) for row in read_parquet(data).to_pylist())
    return [fact._replace(dataset=current_id(fact.dataset), value=_value(fact)) for fact in facts]


def _value(fact: Fact) -> str:
    return current_id(fact.value) if fact.name == "alias" else fact.value
