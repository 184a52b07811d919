"""CSV files with the types that Spark's ``inferSchema`` gives: text columns to the narrowest type that holds all cells.

Source: Spark's CSV data source, options ``header=true, inferSchema=true`` with all others at their defaults, session
time zone UTC. An empty cell is NULL, quoted or not; a line of blanks is none. Quotes within a cell are doubled (Spark's
``escape='"'``), as most programs write them, and cells may have several lines (``multiLine``). What the defaults and
other programs take for different texts is refused.
"""

from __future__ import annotations

import mmap
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.errors import UsageError
from govtool.records.execute.csv_files import BLANKS
from govtool.redaction import clean_failure
from govtool.wording import count

if TYPE_CHECKING:
    import pyarrow as pa

_INTEGER = r"^[+-]?[0-9]+$"
_DOUBLE = r"^\s*([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?|NaN|[+-]?Inf(inity)?)\s*$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_ZONE = r"(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])"
_TIMESTAMP = rf"{_DATE[:-1]}([T ][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}(\.[0-9]{{1,6}})?{_ZONE}?)?)?$"
_BOOLEAN = r"^(?i:true|false)$"
_BLANK_LINE = re.compile(rb"^[\x00-\x09\x0b\x0c\x0e-\x20]+\r?$", re.MULTILINE)
_ESCAPED_QUOTE = re.compile(rb'\\"')
_QUOTE_WITHIN = re.compile(rb'[^,"\r\n]"[^,"\r\n]')
"""A quote that neither begins nor ends a cell; doubled ones are none."""


def read_csv(file: Path) -> pa.Table:
    """Read a file with a header. A line with fewer cells ends in NULLs, as Spark reads it.

    Raises:
        UsageError: There is no header, a line has more cells than it, or quotes that are read in different ways
            (``usage.relation``).
    """
    import pyarrow as pa

    header = _header(file)
    has_blank_lines = _look_at(file)
    try:
        table = _whole_texts(file, header, has_blank_lines=has_blank_lines)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise UsageError(
            f"not a CSV file: {clean_failure(error)}", code="usage.relation", location=str(file)
        ) from error
    columns = [inferred(table.column(at)) for at in range(table.num_columns)]
    return pa.table(columns, names=header)


def _whole_texts(file: Path, header: list[str], *, has_blank_lines: bool) -> pa.Table:
    """The cells of a file as text; of its lines made whole, where it has blank ones or cannot be read as it is."""
    import pyarrow as pa

    cleaned = _with_whole_lines(file, len(header)) if has_blank_lines else None
    try:
        return _texts(file if cleaned is None else cleaned, header)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        whole = _with_whole_lines(file, len(header))
        if whole is None:
            raise
        return _texts(whole, header)


def _header(file: Path) -> list[str]:
    import csv

    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            names = next(csv.reader(stream), [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"cannot read it: {error}", code="usage.relation", location=str(file)) from error
    problem = ""
    if not names:
        problem = "the file has no header: " + ("its first line is empty" if file.stat().st_size else "it is empty")
    elif any(map(_is_number, names)):
        problem = "the file has no header: its first line has numbers"
    elif not all(name.strip(BLANKS) for name in names):
        column = next(at for at, name in enumerate(names, 1) if not name.strip(BLANKS))
        problem = f"the file has no whole header: column {column} has no name"
    if problem:
        raise UsageError(
            problem,
            code="usage.relation-header",
            location=f"{file}:1",
            hint="the first line of a relation names its columns",
        )
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise UsageError(f"two columns are named '{name}'", code="usage.relation-header", location=f"{file}:1")
        seen.add(name.lower())
    return names


def _look_at(file: Path) -> bool:
    """Whether the file has lines of blanks; refuse it where Spark may take a cell with quotes for another text.

    Raises:
        UsageError: There is a quote behind a backslash, or text behind a closing one (``usage.relation``).
    """
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        escaped = _ESCAPED_QUOTE.search(content)
        within = escaped is None and _QUOTE_WITHIN.search(content) is not None
        has_blank_lines = _BLANK_LINE.search(content) is not None
        line = 0 if escaped is None else content[: escaped.start()].count(b"\n") + 1
    problem = "a quote behind a backslash, which Spark reads in another way than most programs do" if line else ""
    if within and (line := _text_behind_a_quote(file)):
        problem = "text behind the quote that ends a cell"
    if problem:
        hint = "write quotes within a cell as two quotes, or the relation as Parquet"
        raise UsageError(problem, code="usage.relation", location=f"{file}:{line}", hint=hint)
    return has_blank_lines


def _text_behind_a_quote(file: Path) -> int:
    """The first line with text behind a closing quote; 0 if there is none."""
    import csv

    with file.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(stream, strict=True)
        try:
            for _ in rows:
                pass
        except csv.Error as error:
            return rows.line_num if "expected after" in str(error) else 0
        except UnicodeDecodeError:
            return 0  # the reader refuses it
    return 0


def _texts(source: Path | pa.BufferReader, header: list[str]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    options = csv.ConvertOptions(
        column_types=dict.fromkeys(header, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    return csv.read_csv(source, parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=options)


def _with_whole_lines(file: Path, width: int) -> pa.BufferReader | None:
    """The file without lines of blanks, with empty cells at the end of short lines; None if it has neither.

    Raises:
        UsageError: A line has more cells than the header.
    """
    import csv

    import pyarrow as pa

    found, start, is_other = [], 0, False
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            lines = stream.readlines()
        rows = csv.reader(lines)
        for row in rows:
            own = "".join(lines[start : rows.line_num])
            if not own.strip(BLANKS):
                start, is_other = rows.line_num, True
                continue
            if len(row) > width:
                problem = f"the line has {count(len(row), 'cell')}, and the header has {width:,}"
                raise UsageError(problem, code="usage.relation", location=f"{file}:{start + 1}")
            if 0 < len(row) < width:
                content = own.rstrip("\r\n")
                own, is_other = content + "," * (width - len(row)) + own[len(content) :], True
            found.append(own)
            start = rows.line_num
    except (csv.Error, UnicodeDecodeError):
        return None
    return pa.BufferReader("".join(found).encode()) if is_other else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def inferred(column: Any) -> Any:
    """A column of texts in the narrowest type that fits all; texts if none does."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = column.drop_null()
    if not len(texts):
        return column
    for pattern, convert in (
        (_INTEGER, _integers),
        (_DOUBLE, _doubles),
        (_DATE, lambda each: pc.cast(each, pa.date32())),
        (_TIMESTAMP, _timestamps),
        (_BOOLEAN, lambda each: pc.equal(pc.utf8_lower(each), "true")),
    ):
        if pc.all(pc.match_substring_regex(texts, pattern)).as_py():
            try:
                return convert(column)
            except pa.ArrowInvalid:  # such as a date that is none
                continue
    return _moments(column)


def _integers(column: Any) -> Any:
    """Integers of 32 bits, of 64, or decimals; Spark takes those of more than 38 digits for doubles."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pc.replace_substring_regex(column, r"^\+", "")
    for kind in (pa.int32(), pa.int64()):
        try:
            return pc.cast(plain, kind)
        except pa.ArrowInvalid:
            continue
    digits = max(len(each.lstrip("+-")) for each in column.drop_null().to_pylist())
    return pc.cast(plain, pa.decimal128(digits, 0)) if digits <= 38 else pc.cast(plain, pa.float64())


def _doubles(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pc.replace_substring_regex(pc.utf8_trim_whitespace(column), r"^\+", "")
    plain = pc.replace_substring_regex(plain, r"([0-9.])[dDfF]$", r"\1")
    return pc.cast(plain, pa.float64())


def _timestamps(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    # Arrow takes moments with a zone, or those without: all are given one, and all are given seconds.
    plain = pc.replace_substring_regex(column, r"^([0-9-]{10})$", r"\1 00:00")
    plain = pc.replace_substring_regex(plain, r"^([0-9-]{10}.[0-9]{2}:[0-9]{2})$", r"\1:00")
    plain = pc.replace_substring_regex(plain, r"^([0-9-]{10}.[0-9:.]*)$", r"\1Z")
    return pc.cast(plain, pa.timestamp("us", "UTC"))


def _moments(column: Any) -> Any:
    """A column of timestamps in any form that Spark reads, else the texts."""
    import pyarrow as pa

    from govtool.app.why.moments import moment

    known: dict[str, Any] = {}
    for text in column.drop_null().to_pylist():
        if text not in known:
            known[text] = moment(text)
            if known[text] is None:
                return column
    found = [None if text is None else known[text] for text in column.to_pylist()]
    return pa.chunked_array([pa.array(found, pa.timestamp("us", "UTC"))])
