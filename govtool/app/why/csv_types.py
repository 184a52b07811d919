"""CSV files with the types that Spark's ``inferSchema`` gives: text columns to the narrowest type that holds all cells.

Source: Spark's CSV data source, options ``header=true, inferSchema=true`` with all others at their defaults, session
time zone UTC. An empty cell is NULL, a quoted empty one an empty text.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.errors import UsageError
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


def read_csv(file: Path) -> pa.Table:
    """Read a file with a header. A line with fewer cells ends in NULLs, as Spark reads it.

    Raises:
        UsageError: There is no header, or a line has more cells than it (``usage.relation``).
    """
    import pyarrow as pa

    header = _header(file)
    try:
        table = _texts(file, header)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        whole = _with_whole_lines(file, len(header))
        if whole is None:
            raise UsageError(
                f"not a CSV file: {clean_failure(error)}", code="usage.relation", location=str(file)
            ) from error
        table = _texts(whole, header)
    columns = [inferred(table.column(at)) for at in range(table.num_columns)]
    return pa.table(columns, names=header)


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
    elif not all(map(str.strip, names)):
        column = next(at for at, name in enumerate(names, 1) if not name.strip())
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


def _texts(source: Path | pa.BufferReader, header: list[str]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    options = csv.ConvertOptions(
        column_types=dict.fromkeys(header, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return csv.read_csv(source, parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=options)


def _with_whole_lines(file: Path, width: int) -> pa.BufferReader | None:
    """The file with empty cells at the end of lines that have too few; None if no line of it has.

    Raises:
        UsageError: A line has more cells than the header.
    """
    import csv

    import pyarrow as pa

    found, start, is_short = [], 0, False
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            lines = stream.readlines()
        rows = csv.reader(lines)
        for row in rows:
            own = "".join(lines[start : rows.line_num])
            if len(row) > width:
                problem = f"the line has {count(len(row), 'cell')}, and the header has {width:,}"
                raise UsageError(problem, code="usage.relation", location=f"{file}:{start + 1}")
            if 0 < len(row) < width:
                content = own.rstrip("\r\n")
                own, is_short = content + "," * (width - len(row)) + own[len(content) :], True
            found.append(own)
            start = rows.line_num
    except (csv.Error, UnicodeDecodeError):
        return None
    return pa.BufferReader("".join(found).encode()) if is_short else None


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
