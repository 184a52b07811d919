"""The certificate of an erasure: copies that were written, uncertain results, and data out of reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from govtool.answers.answer import Answer, Cell

SCHEMA = "erasure-certificate/1"
BEYOND = (
    "copies of these datasets elsewhere",
    "backups and snapshots of file systems",
    "older versions that a table format or a store of objects keeps",
    "logs, caches and spilled files of the engines that ran the jobs",
    "private values of recorded plans in the store of govtool",
)
"""What no plan covers, whatever it says."""


@dataclass(frozen=True, slots=True)
class CertificateAnswer(Answer):
    """A certificate, or the result of checking one again.

    Attributes:
        document: The certificate.
        problems: What is not as it says; empty where all is.
        folder: Where the corrected copies are.
    """

    schema: ClassVar[str] = SCHEMA
    fields: ClassVar[tuple[str, ...]] = (
        *("dataset", "folder", "deleted", "changed", "appeared", "unchanged"),
        *("rows", "verified"),
    )
    types: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("deleted", "changed", "appeared", "unchanged", "rows"), "integer"
    )

    document: Mapping[str, Any]
    folder: str = ""
    problems: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """True if all datasets were written, all is certain, and nothing is known to be left."""
        return not any(self.document[name] for name in ("unknown", "not_written", "not_searched", "not_reached"))

    def body(self) -> Mapping[str, object]:
        """The certificate's keys, as docs/schemas/erasure-certificate-1.json has them."""
        return {name: value for name, value in self.document.items() if name not in ("govtool", "schema")}

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row a dataset that was written."""
        for each in self.document["datasets"]:
            counts = (each["deleted"], each["changed"], each["appeared"], each.get("unchanged"))
            yield each["dataset"], each["folder"], *counts, each["rows_after"], each["verified"]
