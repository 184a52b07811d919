"""Lines to rows: JSON objects (a line each, an array, or printed over many lines) and CSV with a header."""

from __future__ import annotations

import csv
import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from govtool.capture.logs.query_record import Reject
from govtool.capture.logs.stream import MAX_RECORD, text_of

Line = tuple[int, bytes]
Row = tuple[int, dict[str, Any]]
"""The line on which it begins, and its values by name."""

MAX_LINES = 20_000
"""Lines of one CSV record: statements are long, but a quote that is never closed is longer."""

PAGES = ("res", "jobs")
"""Names under which APIs list rows, a page an object: Databricks' query history, BigQuery's ``jobs.list``."""

_MARKS = re.compile(r'["\\{}\[\]]')

csv.field_size_limit(MAX_RECORD)


def json_rows(lines: Iterator[Line | Reject], file: str) -> Iterator[Row | Reject]:
    """JSON objects. A line that is no object costs only itself."""
    first: Line | None = None
    for line in lines:
        if isinstance(line, Reject):
            yield line
        elif line[1].strip():
            first = line
            break
    if first is None:
        return
    rest = chain([first], lines)
    if one_a_line(first[1]):
        yield from json_lines(rest, file)
    else:
        yield from _json_values(rest, file)


def one_a_line(line: bytes) -> bool:
    """True if the first line says that there is one object a line: it holds one, or the beginning of a broken one."""
    text = line.strip()
    if text.startswith(b"["):
        return False
    return text != b"{" and (
        text.endswith(b"}") or not text.startswith(b"{") or (b":" in text and text.count(b'"') > 8)
    )


def json_lines(lines: Iterator[Line | Reject], file: str) -> Iterator[Row | Reject]:
    """JSON objects, one per line."""
    loads = json.loads
    for line in lines:
        if isinstance(line, Reject):
            yield line
            continue
        number, data = line
        if len(data) > MAX_RECORD:
            yield Reject(file, number, f"a record of more than {MAX_RECORD >> 20} MiB")
            continue
        if not data.strip():
            continue
        try:
            value = loads(data)
        except (ValueError, RecursionError) as error:
            try:
                value = loads(text_of(data))  # not UTF-8
            except (ValueError, RecursionError):
                yield Reject(file, number, f"no JSON: {_error_text(error)}")
                continue
        if isinstance(value, dict):
            yield from _of_page(number, value)
        else:
            yield Reject(file, number, f"not a JSON object but {type(value).__name__}")


def _json_values(lines: Iterator[Line | Reject], file: str) -> Iterator[Row | Reject]:
    """Objects one after the other or in an array, over as many lines as they take."""
    parts: list[str] = []
    size = 0
    depth = 0
    quoted = False
    start = 0
    for line in lines:
        if isinstance(line, Reject):
            yield line
            continue
        number, data = line
        text = text_of(data)
        begin = 0
        skip = -1
        for match in _MARKS.finditer(text):
            at = match.start()
            mark = text[at]
            # Braces in a text end nothing, and a mark behind a backslash does not end the text.
            if quoted:
                if at == skip:
                    continue
                if mark == "\\":
                    skip = at + 1
                elif mark == '"':
                    quoted = False
                continue
            if mark == '"':
                quoted = True
            elif mark == "{" or (mark == "[" and depth):
                if not depth:
                    begin, start, parts, size = at, number, [], 0
                depth += 1
            elif depth and mark in "}]":
                depth -= 1
                if not depth:
                    parts.append(text[begin : at + 1])
                    yield from _value("\n".join(parts), start, file)
                    parts = []
        if depth:
            parts.append(text[begin:])
            size += len(text) - begin
            if size > MAX_RECORD:
                yield Reject(file, start, f"a record of more than {MAX_RECORD >> 20} MiB", fatal=True)
                return
    if depth:
        yield Reject(file, start, "half a JSON object")


def _value(text: str, line: int, file: str) -> Iterator[Row | Reject]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield Reject(file, line, f"no JSON: {_error_text(error)}")
        return
    if isinstance(value, dict):
        yield from _of_page(line, value)
    else:
        yield Reject(file, line, "not a JSON object")


def _of_page(line: int, value: dict[str, Any]) -> Iterator[Row]:
    """The rows of a page of an API; any other object is a row itself."""
    for name in PAGES:
        listed = value.get(name)
        if isinstance(listed, list) and all(isinstance(item, dict) for item in listed):
            yield from ((line, item) for item in listed)
            return
    yield line, value


def _error_text(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error).split(":")[0].lower()[:80]


def csv_rows(lines: Iterator[Line | Reject], file: str) -> Iterator[Row | Reject]:
    """CSV with a header line; its names in lower case. The separator is the one that the header has most of."""
    head: list[str] = []
    pending: deque[Line | Reject] = deque()
    for line in lines:
        pending.append(line)
        if not isinstance(line, Reject) and line[1].strip():
            break
    else:
        yield from (line for line in pending if isinstance(line, Reject))
        return
    first = text_of(pending[-1][1]) if not isinstance(pending[-1], Reject) else ""
    separator = max(",;\t|", key=first.count)
    for record in csv_records(chain(pending, lines), file, lambda size: not head or size == len(head), separator):
        if isinstance(record, Reject):
            yield record
        elif not head:
            head.extend(name.strip().lower() for name in record[1])
        else:
            yield record[0], dict(zip(head, record[1], strict=True))


def csv_records(
    lines: Iterator[Line | Reject], file: str, fits: Callable[[int], bool], separator: str = ","
) -> Iterator[tuple[int, list[str]] | Reject]:
    """CSV records with the line each begins on.

    A record with a number of fields that does not fit is a reject. Had it swallowed further lines by a stray quote,
    they are read again without it.
    """
    source = _Numbered(lines)
    while not source.ended:
        reader = csv.reader(source, delimiter=separator, strict=False)
        while True:
            source.begin()
            problem = ""
            try:
                fields = next(reader, None)
            except csv.Error as error:
                fields, problem = [], str(error)
            except _TooLongError as error:
                fields, problem = [], str(error)
            yield from source.rejects()
            if fields is None:
                break
            if not problem and not fields:
                continue
            if not problem and fits(len(fields)):
                yield source.first, fields
                continue
            yield Reject(file, source.first, problem or f"{len(fields)} fields, which is not the number of this log")
            if source.again() or problem:
                break  # a reader that has failed, or whose lines are given once more, is replaced by a new one


class _TooLongError(Exception):
    """A record takes more lines or bytes than any does."""


class _Numbered:
    """Lines for ``csv.reader``: knows on which line a record began, and can give its later lines again."""

    def __init__(self, lines: Iterator[Line | Reject]) -> None:
        self._lines = lines
        self._again: deque[Line] = deque()
        self._taken: list[Line] = []
        self._size = 0
        self._rejects: list[Reject] = []
        self.first = 0
        self.ended = False

    def begin(self) -> None:
        """A new record begins."""
        self._taken.clear()
        self._size = 0

    def again(self) -> bool:
        """Give all but the first line of the last record once more; returns whether there are any."""
        later = self._taken[1:]
        self._again.extendleft(reversed(later))
        if later:
            self.ended = False
        return bool(later)

    def rejects(self) -> list[Reject]:
        """Rejects among the lines since the last call."""
        found, self._rejects = self._rejects, []
        return found

    def __iter__(self) -> _Numbered:
        return self

    def __next__(self) -> str:
        if self._again:
            line = self._again.popleft()
        else:
            line = self._fresh()
        if not self._taken:
            self.first = line[0]
        self._taken.append(line)
        self._size += len(line[1])
        if len(self._taken) > MAX_LINES or self._size > MAX_RECORD:
            raise _TooLongError("a quote that is not closed")
        return text_of(line[1]) + "\n"

    def _fresh(self) -> Line:
        for line in self._lines:
            if not isinstance(line, Reject):
                return line
            self._rejects.append(line)
        self.ended = True
        raise StopIteration
