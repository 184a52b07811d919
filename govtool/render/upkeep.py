"""The outcomes of ``store gc``, ``fsck``, ``copy`` and ``compact``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from govtool.answers.envelope import envelope
from govtool.render.formats.envelope import compact, json_lines
from govtool.render.layout.rows import ROW_FORMATS, laid_out
from govtool.render.layout.table import Table, TableColumn, to_csv
from govtool.render.layout.text import count, printable, size
from govtool.wording import few

if TYPE_CHECKING:
    from govtool.app.versions.ancestors import UnknownAncestor
    from govtool.store.upkeep.copy import Copied
    from govtool.store.upkeep.fsck import Check
    from govtool.store.upkeep.gc import Collection

FORMATS = ROW_FORMATS
_SHOWN = 5
"""Runs that a sentence names."""


def render_gc(form: str, result: Collection, store: str, *, dry_run: bool) -> Table | Iterable[str]:
    """Render what was collected, or would be."""
    removed: list[Mapping[str, object]] = [
        {"key": info.key, "bytes": info.size, "modified": info.modified.isoformat()} for info in result.removed
    ]
    verb = "would be removed" if dry_run else "removed"
    sentence = (
        f"{count(len(removed), 'object')} {verb}, {size(result.size)} · {result.kept:,} in use"
        f" · {result.young:,} too young"
    )
    body = {
        "store": store,
        "dry_run": dry_run,
        "removed": removed,
        "bytes": result.size,
        "kept": result.kept,
        "young": result.young,
    }
    return _render(form, "gc/1", body, removed, ("key", "bytes", "modified"), sentence)


def render_fsck(
    form: str,
    result: Check,
    store: str,
    unknown: Sequence[UnknownAncestor] = (),
    forgotten: Sequence[str] = (),
) -> Table | Iterable[str]:
    """Render the damage, if any, the input versions whose writing is not known, and runs whose rows were removed."""
    problems: list[Mapping[str, object]] = [
        {"code": p.code, "key": p.key, "message": p.message, "hint": p.remedy} for p in result.problems
    ]
    counts = {"commits": result.commits, "nodes": result.nodes, "fragments": result.fragments}
    sentence = (
        f"{count(result.commits, 'commit')}, {count(result.nodes, 'manifest node')}, "
        f"{count(result.fragments, 'fragment')} checked, {size(result.bytes_read)} read · "
        + (count(len(problems), "problem") if problems else "no problem")
        + (f" · {count(len(unknown), 'unknown ancestor')}" if unknown else "")
        + (f"\nprivate values removed by store forget, of {_few(forgotten)}" if forgotten else "")
    )
    ancestors: list[Mapping[str, object]] = [asdict(each) for each in unknown]
    remarks = [_unknown_remark(each) for each in unknown]
    body = {
        "store": store,
        **counts,
        "bytes_read": result.bytes_read,
        "problems": problems,
        "unknown_ancestors": ancestors,
        "forgotten_runs": list(forgotten),
    }
    return _render(form, "fsck/1", body, [*problems, *remarks], ("code", "key", "message", "hint"), sentence)


def _few(names: Sequence[str]) -> str:
    return f"{count(len(names), 'run')}: {few([*map(printable, names)], _SHOWN)}"


def _unknown_remark(unknown: UnknownAncestor) -> Mapping[str, object]:
    version = f"@{unknown.digest[:40]}" if unknown.digest else ""
    return {
        "code": "record.unknown-ancestor",
        "key": unknown.dataset or unknown.run,
        "message": f"run {unknown.run} read {unknown.ancestor}{version}, and its writing is not known",
        "hint": f"ingest the run that wrote it, or record it: govtool snapshot ({unknown.ancestor})",
    }


def copy_sentence(result: Copied, target: str) -> str:
    """One sentence on a copy."""
    sentence = (
        f"{target}: {count(result.objects, 'object')} written, {size(result.size)} · {result.present:,} there already"
    )
    return sentence + (f" · {count(result.removed, 'forgotten object')} removed" if result.removed else "")


def _render(
    form: str,
    schema: str,
    body: Mapping[str, object],
    items: list[Mapping[str, object]],
    names: tuple[str, ...],
    sentence: str,
) -> Table | Iterable[str]:
    if form == "json":
        return json_lines(envelope(schema, body))
    if form == "jsonl":
        return (compact(item) for item in items)
    rows = [[item[name] for name in names] for item in items]
    if form == "csv":
        return to_csv(names, rows)
    numeric = ("bytes",)
    table = Table(
        columns=tuple(TableColumn(name, justify="right" if name in numeric else "left") for name in names),
        rows=[[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows],
        summary=sentence,
    )
    return laid_out(form, table)
