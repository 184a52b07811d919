r"""Patterns of dataset and column names, as selectors and policies write them.

A glob is matched against the whole canonical name, part by part: ``*`` is anything within one part, ``**`` any number
of parts (at the end: at least one). Text between slashes is a regular expression; it is searched in the name of the
dataset, or in the path of the column *within* its dataset, with its quotes (``"Email"``) and without them:

    crm.users.email          that column
    **.email                 every column of that name, fields of structs included
    mart_*.**                every dataset (or column) below a schema whose name begins so
    /(?i)e_?mail$/           every column whose own name ends so

>>> [bool(Pattern("**.email").matches(n)) for n in ("crm.users.email", "a.contact.email", "a.emails")]
[True, True, False]
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from govtool.graph.index import Index
from govtool.linear import LinearRegex
from govtool.names import absolute_id, join_name, renewed_text, split_name, unquote, written_id
from govtool.query.selection.name_columns import FEW, LOCAL, NameColumns, ending, matching, searching

_QUOTED = r'"(?:[^"]|"")*"'
_PART = rf'(?:{_QUOTED}|\[[^\]]*\]|[^."\[])+'
_IN_PART = rf'(?:{_QUOTED}|\[[^\]]*\]|[^."\[])*'
_PATH_GLOBS = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
_FEW_STARS = 2
LONGEST = 500
"""Characters of a pattern."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One glob or regular expression.

    Raises:
        ValueError: The regular expression is not one, or the pattern is empty or too long.
    """

    text: str
    root: str = ""
    """The folder to which names of local files are relative (``Index.paths_root``): their absolute names match, too."""
    is_regex: bool = field(init=False)
    regex: LinearRegex = field(init=False, repr=False, compare=False)
    """What a name has, of a regular expression, or is as a whole, of a glob."""
    last: LinearRegex | None = field(init=False, repr=False, compare=False)
    """The pattern of the last part of a name, if there is one."""
    path: LinearRegex | None = field(init=False, repr=False, compare=False)
    """What matches the names of files in SQL, without their quotes, if the pattern is one of paths."""
    prefix: str = field(init=False, repr=False, compare=False)
    """The prefix of every name that matches a glob; empty for a regular expression."""
    literal: str = field(init=False, repr=False, compare=False)
    """A text that every name that matches a glob has in it; empty for a regular expression."""
    _rest: bool = field(init=False, repr=False, compare=False)
    """True if the last part says less than the whole pattern."""

    def __post_init__(self) -> None:
        text = self.text
        if not text.strip() or len(text) > LONGEST:
            raise ValueError("a pattern has 1 to 500 characters")
        is_regex = len(text) > 2 and text[0] == "/" and text[-1] == "/"
        object.__setattr__(self, "is_regex", is_regex)
        text = renewed_text(text) if is_regex else written_id(text)
        parts = split_name(text)
        regex = LinearRegex(text[1:-1]) if is_regex else _matcher(parts)
        last = None if is_regex or "**" in parts[-1] else _matcher(parts[-1:])
        object.__setattr__(self, "regex", regex)
        object.__setattr__(self, "prefix", "" if is_regex else _literal(parts))
        object.__setattr__(self, "literal", "" if is_regex else max(_literals(parts), key=len))
        object.__setattr__(self, "last", last)
        object.__setattr__(self, "path", None if is_regex else _path_matcher(text))
        object.__setattr__(self, "_rest", parts[:-1] != ["**"])

    def matches(self, name: str) -> bool:
        """Return whether a dataset's name, or for a glob a column's full name, matches."""
        if self._matches(name):
            return True
        whole = absolute_id(name, self.root) if self.root else name
        if self.path is not None and whole.startswith(LOCAL) and self.path.fullmatch(whole.removeprefix("file://")):
            return True
        return (whole != name and self._matches(whole)) or (name.startswith('"') and self._matches_file(name))

    def _matches_file(self, name: str) -> bool:
        """Return whether a name is that of a file, or of a column of one, and matches without its quotes."""
        parts = split_name(name)
        if "/" not in parts[0]:
            return False
        bare = join_name([unquote(parts[0]), *parts[1:]])
        return self._matches(bare) or (self.path is not None and self.path.fullmatch(bare))

    def _matches(self, name: str) -> bool:
        return self._searches(name) if self.is_regex else self.regex.fullmatch(name)

    def _searches(self, name: str) -> bool:
        return self.regex.search(name) or ('"' in name and self.regex.search(name.replace('"', "")))

    def _may_end(self, path: str) -> bool:
        """Return whether a column of this path may match, in any dataset."""
        if self.is_regex:
            return self._searches(path)
        return self.last is None or self.last.fullmatch(split_name(path)[-1])

    def datasets(self, index: Index, names: NameColumns | None = None) -> list[int]:
        """The visible datasets of a graph that match, in the order of their names.

        Args:
            index: The graph.
            names: Its names; given by callers that ask with several patterns.
        """
        known = names or NameColumns(index)
        found = {dataset for prefix in self._prefixes() for dataset in self._among(index, known, prefix)}
        return sorted(dataset for dataset in found if not index.is_hidden(dataset))

    def _among(self, index: Index, names: NameColumns, prefix: str) -> Iterable[int]:
        """The datasets that match, of those whose names begin so; they lie in the order of their names."""
        every = range(index.dataset_count)
        low = bisect_left(every, prefix, key=index.dataset_name)
        high = bisect_right(every, prefix, low, key=lambda dataset: index.dataset_name(dataset)[: len(prefix)])
        if high - low <= FEW:
            return (dataset for dataset in range(low, high) if self.matches(index.dataset_name(dataset)))
        found: list[int] = (matching(self, names.datasets.slice(low, high - low)) + low).tolist()
        return found

    def _prefixes(self) -> list[str]:
        """The beginnings of the names that can match; those of relative and of quoted names differ."""
        path = self.prefix.removeprefix("file://")
        below = ["file:"] if self.root and path.startswith("/") else []
        below += [f"file://{path}"] if self.prefix == path and path.startswith("/") else []
        quoted = [] if self.prefix.startswith('"') else ['"'] if self.path else [f'"{self.prefix}']
        return [self.prefix, *below, *quoted]

    def columns(self, index: Index, paths: ColumnPaths) -> Iterable[int]:
        """The columns of a graph that match; only names that can match are put together."""
        whole = self.is_regex or (self.last is not None and not self._rest)
        numbers = self._ending(paths)
        count = sum(map(paths.count, numbers))
        if whole or count <= FEW:
            nodes = (node for number in numbers for node in paths.nodes(number))
            return nodes if whole else (node for node in nodes if self.matches(index.name(node)))
        found: list[int] = paths.names.matching_columns(self, paths.all_nodes(numbers)).tolist()
        return found

    def _ending(self, paths: ColumnPaths) -> list[int]:
        """The paths, by number, of columns that may match, in any dataset."""
        if not self.is_regex and self.last is None:
            return list(range(paths.path_count))
        if paths.path_count <= FEW:
            return [number for number, path in enumerate(paths.texts) if self._may_end(path)]
        expression = self.regex if self.last is None else self.last
        search = searching if self.is_regex else ending
        found: list[int] = search(expression, paths.column).tolist()
        return found


class ColumnPaths:
    """The distinct paths of a graph's columns and the columns that bear them, hidden datasets left out.

    Args:
        index: The graph.
        names: Its names.
    """

    def __init__(self, index: Index, names: NameColumns | None = None) -> None:
        self.names = names or NameColumns(index)
        self._index = index
        self._offsets, self._nodes = index.arrays["path"], index.arrays["path_node"]
        self.path_count = len(index.arrays["path_suffix"])

    @cached_property
    def texts(self) -> list[str]:
        """The paths, by number."""
        return [self._index.text(i) for i in self._index.arrays["path_suffix"]]

    @cached_property
    def column(self) -> Any:
        """The paths as an Arrow column."""
        return self.names.taken(self._index.arrays["path_suffix"])

    def count(self, number: int) -> int:
        """The number of columns with the path of a number."""
        count: int = self._offsets[number + 1] - self._offsets[number]
        return count

    def nodes(self, number: int) -> list[int]:
        """The columns with the path of a number."""
        return self._nodes[self._offsets[number] : self._offsets[number + 1]].tolist()

    def all_nodes(self, numbers: Iterable[int]) -> Any:
        """The columns with the paths of some numbers: int64."""
        import numpy as np

        nodes = np.asarray(self._nodes)
        return np.concatenate([nodes[:0], *(nodes[self._offsets[n] : self._offsets[n + 1]] for n in numbers)]).astype(
            np.int64
        )


class Patterns:
    """Several patterns, any of which may match."""

    def __init__(self, texts: Iterable[str], root: str = "") -> None:
        self.items = tuple(Pattern(text, root) for text in texts)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self.items)

    def match(self, name: str) -> bool:
        """Return whether a dataset's name, or a full column name by a glob, matches."""
        return any(item.matches(name) for item in self.items)

    def datasets(self, index: Index, names: NameColumns | None = None) -> set[int]:
        """The visible datasets of a graph that match."""
        known = names or NameColumns(index)
        return {dataset for item in self.items for dataset in item.datasets(index, known)}

    def columns(self, index: Index, paths: ColumnPaths | None = None) -> set[int]:
        """The visible columns of a graph that match."""
        known = paths or ColumnPaths(index)
        return {node for item in self.items for node in item.columns(index, known)}


def _literal(parts: list[str]) -> str:
    """The text that the names of a glob's parts begin with."""
    text = ""
    for number, part in enumerate(parts):
        if not part.startswith('"') and re.search(r"[*?]", part):
            return text + re.split(r"[*?]", part)[0]
        text += part + ("." if number < len(parts) - 1 else "")
    return text


def _literals(parts: list[str]) -> list[str]:
    """The texts without wildcards in a glob's parts.

    >>> _literals(["**", "*mart?", '"a*b"'])
    ['', '', 'mart', '', '"a*b"']
    """
    return [text for part in parts for text in ([part] if part.startswith('"') else re.split(r"[*?]+", part))]


def _matcher(parts: list[str]) -> LinearRegex:
    """What matches a glob's parts. With a star or two ``re`` goes over a name a few times at most."""
    text = _glob(parts)
    stars = sum(len(re.findall(r"\*+", part)) for part in parts if not part.startswith('"'))
    return LinearRegex(text, text.replace(_PART, f"{_PART}+") if stars <= _FEW_STARS else "")


def _path_matcher(text: str) -> LinearRegex | None:
    """What matches paths: ``*`` is anything within a folder, ``**`` anything below; None of other patterns."""
    path = text.removeprefix("file://")
    if "/" not in path or '"' in path or "://" in path:
        return None
    pieces = (_PATH_GLOBS.get(piece) or re.escape(piece) for piece in re.split(r"(\*\*|\*|\?)", path))
    return LinearRegex("".join(pieces))


def _glob(parts: list[str]) -> str:
    """The regular expression of a glob's parts."""
    pieces: list[str] = []
    last = len(parts) - 1
    for i, part in enumerate(parts):
        if part == "**":
            pieces.append(rf"{_PART}(?:\.{_PART})*" if i == last else rf"(?:{_PART}\.)*")
        else:
            pieces.append(_segment(part) + ("" if i == last else r"\."))
    return "".join(pieces)


def _segment(part: str) -> str:
    """The regular expression of one part of a glob: ``*`` and ``?`` stay within it."""
    if part.startswith('"'):
        return re.escape(part)
    pieces = re.split(r"(\*+|\?)", part)
    return "".join(_IN_PART if p.startswith("*") else "[^.]" if p == "?" else re.escape(p) for p in pieces)
