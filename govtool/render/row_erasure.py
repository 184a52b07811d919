"""``govtool erase plan --run``, ``erase apply`` and ``erase verify``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from govtool.render.formats.envelope import compact, json_lines
from govtool.render.layout.rows import DATA_FORMATS, answer_csv, data_lines, laid_out
from govtool.render.layout.table import Table, TableColumn
from govtool.render.layout.text import count

if TYPE_CHECKING:
    from govtool.answers.erasure_certificate import CertificateAnswer
    from govtool.answers.row_erasure import DatasetErasure, RowErasureAnswer

FORMATS = ("table", "plain", "json", "csv", "markdown")
SHOWN = 20
"""Rows of a dataset that are shown with ``--show-values``."""
_COUNTS = ("delete", "change", "appear", "same", "unknown")


def render_rows(form: str, answer: RowErasureAnswer, show_values: bool = False) -> Table | Iterable[str]:
    """A plan on rows in one of the formats of ``erase plan``.

    Values of rows are personal data: tables show numbers of rows unless ``show_values`` is set; JSON and CSV, which
    are what ``erase apply`` and other programs read, have them.
    """
    if form in DATA_FORMATS:
        return data_lines(form, answer)
    return laid_out(form, _table(answer, show_values))


def render_certificate(form: str, answer: CertificateAnswer, checked: bool = False) -> Table | Iterable[str]:
    """A certificate in one of ``FORMATS``; with ``checked``, what is not as it says."""
    if form == "json":
        body = answer.to_dict()
        return json_lines({**body, "problems": list(answer.problems)} if checked else body)
    if form == "csv":
        return answer_csv(answer)
    return laid_out(form, _certificate(answer, checked))


def _table(answer: RowErasureAnswer, show_values: bool) -> Table:
    counted = [TableColumn(name, justify="right") for name in _COUNTS]
    return Table(
        columns=(TableColumn("dataset", style="bold"), *counted, TableColumn("how")),
        rows=[_row(each) for each in answer.datasets],
        heading=_heading(answer, show_values),
        summary="\n".join([*_summary(answer), *(_values(answer) if show_values else ())]),
    )


def _row(each: DatasetErasure) -> tuple[str, ...]:
    whole = any(unknown.key is None for unknown in each.unknown)
    unknown = "all" if whole else _number(len(each.unknown))
    unchanged = "?" if each.unchanged is None else f"{each.unchanged:,}"
    numbers = [_number(len(rows)) for rows in (each.delete, each.change, each.appear)]
    return each.dataset, *numbers, unchanged, unknown, _how(each)


def _number(number: int) -> str:
    return f"{number:,}" if number else ""


def _how(each: DatasetErasure) -> str:
    if not each.writable:
        return "not evaluated"
    if each.source:
        return "source"
    if not each.recompute:
        return "not recomputed" if each.unknown else "not recomputed: inputs stay"
    return "recomputed" if each.changes else "recomputed: same values"


def _heading(answer: RowErasureAnswer, show_values: bool) -> str:
    names = [text if show_values else f"{text.partition('=')[0]}=…" for text in answer.subjects]
    runs = f"run {answer.run}" if answer.run is not None else "all recorded runs"
    joined = " and runs joined with it" if answer.run is not None and answer.all_runs else ""
    return f"erasure of {', '.join(names)} · {runs}{joined}"


def _summary(answer: RowErasureAnswer) -> Iterator[str]:
    records = sum(map(len, answer.tokens.values()))
    cost = answer.cost()
    yield " · ".join(
        [
            f"{count(records, 'record')} in {count(len(answer.tokens), 'dataset')}",
            f"{count(cost['datasets'], 'dataset')} to evaluate",
            f"{_rows_to_read(answer)}{count(cost['files'], 'file')}, {cost['bytes']:,} bytes to read",
        ]
    )
    yield f"searched: {', '.join(answer.searched)}"
    hints = {entry.what: f" ({entry.hint})" for entry in answer.not_searched if entry.hint}
    for each in answer.datasets:
        for why in dict.fromkeys(unknown.why for unknown in each.unknown):
            yield f"UNKNOWN: {each.dataset}: {why}{hints.get(each.dataset, '') if each.source else ''}"
    for entry in answer.not_searched:
        yield f"NOT SEARCHED: {entry.what}: {entry.why}{hints.get(entry.what, '')}"
    for entry in answer.not_reached:
        yield f"NOT REACHED: {entry.what}: {entry.why}{f' ({entry.hint})' if entry.hint else ''}"
    for entry in answer.no_subject:
        yield f"NO SUBJECT: {entry.what}: {entry.why}"


def _rows_to_read(answer: RowErasureAnswer) -> str:
    """How many rows are read, as far as it is known: text files do not say how many they hold."""
    every = [each.rows_scanned for each in answer.datasets if each.recompute]
    known = sum(rows for rows in every if rows is not None)
    if None not in every:
        return f"{count(known, 'row')}, "
    return f"at least {count(known, 'row')}, " if known else ""


def _values(answer: RowErasureAnswer) -> Iterator[str]:
    for each in answer.datasets:
        lines = [f"  - {compact(list(key))}" for key in each.delete]
        lines += [f"  ~ {compact(list(one.before))} → {compact(list(one.after))}" for one in each.change]
        lines += [f"  + {compact(list(row))}" for row in each.appear]
        if lines:
            yield f"{each.dataset} ({', '.join(each.key)})"
            yield from lines[:SHOWN]
            if len(lines) > SHOWN:
                yield f"  {count(len(lines) - SHOWN, 'more row')} in JSON and CSV"


def _certificate(answer: CertificateAnswer, checked: bool) -> Table:
    names = ("deleted", "changed", "appeared", "unchanged")
    document = answer.document
    rows = []
    for each in document["datasets"]:
        numbers = [_number(each[name]) if name != "unchanged" else f"{each[name]:,}" for name in names]
        rows.append((each["folder"], *numbers, f"{each['rows_after']:,}", each["verified"]))
    return Table(
        columns=(
            TableColumn("folder", style="bold"),
            *(TableColumn(name, justify="right") for name in names),
            TableColumn("rows", justify="right"),
            TableColumn("verified"),
        ),
        rows=rows,
        heading=f"corrected copies in {answer.folder} · {document['ended']}",
        summary="\n".join(_closing(answer, document, checked)),
    )


def _closing(answer: CertificateAnswer, document: Any, checked: bool) -> Iterator[str]:
    copies = count(len(document["datasets"]), "dataset")
    unchanged = len(document["unchanged"])
    yield f"{copies} written, {unchanged:,} without a change"
    if checked:
        yield from (f"DIFFERS: {problem}" for problem in answer.problems)
        yield "all is as the certificate says" if not answer.problems else f"{len(answer.problems):,} differences"
    for each in document["not_written"]:
        yield f"NOT WRITTEN: {each['dataset']}: {each['why']}"
    for each in document["unknown"]:
        rows = f" ({count(each['rows'], 'row')})" if "rows" in each else ""
        yield f"UNKNOWN: {each['dataset']}{rows}: {'; '.join(each['why'])}"
    for each in document["not_searched"]:
        yield f"NOT SEARCHED: {each['dataset']}: {each['why']}"
    for each in document["not_reached"]:
        yield f"NOT REACHED: {each['dataset']}: {each['why']}"
    for each in document.get("no_subject", ()):
        yield f"NO SUBJECT: {each['dataset']}: {each['why']}"
    yield f"BEYOND ANY PLAN: {'; '.join(document['beyond'])}"
