"""Proof of incremental ingests: after each of many edits the commit equals that of an ingest in full, to the byte.

    python -m bench.incremental.oracle FOLDER --dialect postgres --edits 500 --seed 1

One store is ingested with the memos of the ingest before, by one process or by two, the other as if there were none.
Fragments of all tables are compared by their digests, and the figures of the commits.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from bench.incremental.edits import Warehouse
from govtool.answers.ingest import IngestResult
from govtool.app.ingest import sql_extraction as ingesting
from govtool.app.ingest import sql_workers
from govtool.app.ingest.sql import ingest_sql
from govtool.app.ingest.sql_lineage import lineage_with_memos
from govtool.app.ingest.sql_options import SqlRequest
from govtool.capture.sql.folding.results import Shortfall
from govtool.store import Commit, Store


@dataclass(frozen=True, slots=True)
class EditOutcome:
    """What an edit was, and whether both ingests agree about it."""

    edit: str
    difference: str
    """Empty where they agree."""
    extracted: int
    """The files that were extracted."""
    files: int


def compare(
    folder: Path, work: Path, *, dialect: str, edits: int, seed: int, relation_from: str | None = None
) -> Iterator[EditOutcome]:
    """Edit a copy of a folder again and again, and compare both ingests after each edit.

    Args:
        folder: SQL; it is left as it is.
        work: An empty folder for the copy and the stores.
        dialect: As of ``govtool ingest sql``.
        edits: How many.
        seed: Of the edits.
        relation_from: As of ``govtool ingest sql``.
    """
    copy = work / "warehouse"
    shutil.copytree(folder, copy)
    warehouse = Warehouse(copy, seed)
    request = first = SqlRequest((str(copy),), dialect=dialect, relation_from=relation_from, source="warehouse")
    workers = random.Random(seed)
    by_memos, in_full = Store.init(str(work / "memos")), Store.init(str(work / "full"))
    edit = "first"
    for _ in range(edits + 1):
        counted = mock.patch.object(ingesting, "lineage_with_memos", _counted(counts := [0, 0]))
        with counted, mock.patch.object(sql_workers, "WORTH", 0):
            ours = ingest_sql(by_memos, replace(request, workers=workers.choice([1, 1, 2])))
        with mock.patch.object(ingesting, "lineage_with_memos", return_value=None):
            theirs = ingest_sql(in_full, request)
        differs = difference(by_memos, ours.commit, in_full, theirs.commit) or report_difference(ours, theirs)
        yield EditOutcome(edit, differs, *counts)
        edit = warehouse.edit()
        request = replace(first, **warehouse.options)


def _counted(counts: list[int]) -> Any:
    def counted(*args: Any, **keywords: Any) -> Any:
        lineage = lineage_with_memos(*args, **keywords)
        if lineage is not None:
            counts[:] = lineage.extracted, lineage.files
        return lineage

    return counted


def difference(store: Store, ours: Commit, other: Store, theirs: Commit) -> str:
    """Return where two commits differ; empty where their content is equal."""
    a, b = _content(store, ours), _content(other, theirs)
    if a != b:
        tables = sorted({table for table, *_ in (a - b) + (b - a)})
        return f"fragments of {', '.join(tables)}"
    figures = [key for key in {**ours.summary, **theirs.summary} if _figure(ours, key) != _figure(theirs, key)]
    return f"figures {', '.join(figures)}" if figures else ""


def report_difference(ours: IngestResult, theirs: IngestResult) -> str:
    """Return what two ingests report differently; empty where users see the same."""
    shown = [(each.diagnostics, each.reasons, _without_texts(each)) for each in (ours, theirs)]
    pairs = zip(("diagnostics", "reasons", "shortfalls"), *shown, strict=True)
    return ", ".join(name for name, one, other in pairs if one != other)


def _without_texts(result: IngestResult) -> list[Shortfall]:
    """Scripts that are not read again have none."""
    return [shortfall._replace(text="") for shortfall in result.shortfalls]


def _content(store: Store, commit: Commit) -> Counter[tuple[str, str, str, int]]:
    return Counter((ref.table, ref.source, ref.sha256, ref.rows) for ref in store.fragments(commit))


def _figure(commit: Commit, key: str) -> object:
    summary: Mapping[str, object] = commit.summary
    return summary.get(key)


def main() -> None:
    """Run from the command line; exit code 1 where an edit makes a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dialect", default="")
    parser.add_argument("--relation-from")
    parser.add_argument("--edits", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    wrong = extracted = total = 0
    with tempfile.TemporaryDirectory() as work:
        found = compare(
            options.folder,
            Path(work),
            dialect=options.dialect,
            edits=options.edits,
            seed=options.seed,
            relation_from=options.relation_from,
        )
        for number, outcome in enumerate(found):
            if number:
                extracted, total = extracted + outcome.extracted, total + outcome.files
            if options.verbose:
                print(number, outcome.edit, outcome.extracted, outcome.files, flush=True)
            if outcome.difference:
                wrong += 1
                print(f"{number}: {outcome.edit}: {outcome.difference}", flush=True)
    share = extracted / total if total else 0.0
    print(f"{options.edits} edits, {wrong} differ; {share:.1%} of the files were extracted again")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
