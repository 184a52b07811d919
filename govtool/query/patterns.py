r"""Patterns of dataset and column names, as selectors and policies write them.

A glob is matched against the whole canonical name, part by part: ``*`` is anything within one part, ``**`` any number
of parts (at the end: at least one). Text between slashes is a regular expression; it is searched in the name of the
dataset, or in the path of the column *within* its dataset:

    crm.users.email          that column
    **.email                 every column of that name, fields of structs included
    mart_*.**                every dataset (or column) below a schema whose name begins so
    /(?i)e_?mail$/           every column whose own name ends so

>>> [bool(Pattern("**.email").matches(n)) for n in ("crm.users.email", "a.contact.email", "a.emails")]
[True, True, False]
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile

from govtool.graph.index import Index
from govtool.linear import LinearRegex
from govtool.names import absolute_id, join_name, renewed_text, split_name, unquote, written_id

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
    _regex: LinearRegex = field(init=False, repr=False, compare=False)
    _last: LinearRegex | None = field(init=False, repr=False, compare=False)
    """The pattern of the last part of a name, if there is one."""
    _path: LinearRegex | None = field(init=False, repr=False, compare=False)
    """What matches the names of files in SQL, without their quotes, if the pattern is one of paths."""
    prefix: str = field(init=False, repr=False, compare=False)
    """The prefix of every name that matches a glob; empty for a regular expression."""
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
        object.__setattr__(self, "_regex", regex)
        object.__setattr__(self, "prefix", "" if is_regex else _literal(parts))
        object.__setattr__(self, "_last", last)
        object.__setattr__(self, "_path", None if is_regex else _path_matcher(text))
        object.__setattr__(self, "_rest", parts[:-1] != ["**"])

    def matches(self, name: str) -> bool:
        """Return whether a dataset's name, or for a glob a column's full name, matches."""
        if self._matches(name):
            return True
        whole = absolute_id(name, self.root) if self.root else name
        if self._path is not None and whole.startswith(_LOCAL) and self._path.fullmatch(whole.removeprefix("file://")):
            return True
        return (whole != name and self._matches(whole)) or (name.startswith('"') and self._matches_file(name))

    def _matches_file(self, name: str) -> bool:
        """Return whether a name is that of a file, or of a column of one, and matches without its quotes."""
        parts = split_name(name)
        if "/" not in parts[0]:
            return False
        bare = join_name([unquote(parts[0]), *parts[1:]])
        return self._matches(bare) or (self._path is not None and self._path.fullmatch(bare))

    def _matches(self, name: str) -> bool:
        return self._regex.search(name) if self.is_regex else self._regex.fullmatch(name)

    def _may_end(self, path: str) -> bool:
        """Return whether a column of this path may match, whatever its dataset."""
        if self.is_regex:
            return self._regex.search(path)
        return self._last is None or self._last.fullmatch(split_name(path)[-1])

    def datasets(self, index: Index) -> Iterable[int]:
        """The visible datasets of a graph that match; they lie in the order of their names."""
        for dataset in sorted({dataset for prefix in self._prefixes() for dataset in _beginning(index, prefix)}):
            if self.matches(index.dataset_name(dataset)) and not index.is_hidden(dataset):
                yield dataset

    def _prefixes(self) -> list[str]:
        """The beginnings of the names that can match; those of relative and of quoted names differ."""
        path = self.prefix.removeprefix("file://")
        below = ["file:"] if self.root and path.startswith("/") else []
        below += [f"file://{path}"] if self.prefix == path and path.startswith("/") else []
        quoted = [] if self.prefix.startswith('"') else ['"'] if self._path else [f'"{self.prefix}']
        return [self.prefix, *below, *quoted]

    def columns(self, index: Index, paths: ColumnPaths) -> Iterable[int]:
        """The columns of a graph that match; only names that can match are put together."""
        whole = self.is_regex or (self._last is not None and not self._rest)
        for number, path in enumerate(paths.texts):
            if not self._may_end(path):
                continue
            for node in paths.nodes(number):
                if whole or self.matches(f"{index.dataset_name(index.node_dataset[node])}.{path}"):
                    yield node


class ColumnPaths:
    """The distinct paths of a graph's columns and the columns that bear them, hidden datasets left out."""

    def __init__(self, index: Index) -> None:
        self._offsets, self._nodes = index.arrays["path"], index.arrays["path_node"]
        self.texts = [index.text(i) for i in index.arrays["path_suffix"]]

    def nodes(self, number: int) -> list[int]:
        """The columns with the path of a number."""
        return self._nodes[self._offsets[number] : self._offsets[number + 1]].tolist()


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

    def datasets(self, index: Index) -> set[int]:
        """The visible datasets of a graph that match."""
        return {dataset for item in self.items for dataset in item.datasets(index)}

    def columns(self, index: Index, paths: ColumnPaths | None = None) -> set[int]:
        """The visible columns of a graph that match."""
        known = paths or ColumnPaths(index)
        return {node for item in self.items for node in item.columns(index, known)}


_LOCAL = "file:///"


def _beginning(index: Index, prefix: str) -> Iterable[int]:
    """The datasets whose name begins so; they lie in the order of their names."""
    first = bisect_left(range(index.dataset_count), prefix, key=index.dataset_name)
    return takewhile(lambda d: index.dataset_name(d).startswith(prefix), range(first, index.dataset_count))


def _literal(parts: list[str]) -> str:
    """The text that the names of a glob's parts begin with."""
    text = ""
    for number, part in enumerate(parts):
        if not part.startswith('"') and re.search(r"[*?]", part):
            return text + re.split(r"[*?]", part)[0]
        text += part + ("." if number < len(parts) - 1 else "")
    return text


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
