"""Selectors: many columns and datasets by one text, after dbt's and extended to columns.

    crm.users.email         by name; the shortest unambiguous end will do
    mart.**  /(?i)mail$/    by pattern (see ``govtool.query.selection.patterns``)
    x+  2+x+1  +x           with what is made of it, two steps up and one down, with all it is made of
    @x                      with all that is made of it, and all that *that* is made of
    class:personal.*        by method: class, tag, zone, owner, job, run, software, kind, changed, opaque, unused
    path:models/staging     by the file that defines it, or a folder above that; resource_type:model as dbt calls it
    a b   a,b               union; intersection

Columns spread over edges between columns; a dataset that is chosen as a whole also over reads of its rows.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NoReturn

from govtool.errors import UnknownNameError, UsageError
from govtool.graph.index import Index
from govtool.graph.walks.walk import walk
from govtool.model.kinds import CONTRIBUTED, EdgeKind
from govtool.names import relative_id, renewed_text
from govtool.query.changes.change import Change, rules, seed_states, upstream_rules
from govtool.query.selection.patterns import ColumnPaths, Pattern
from govtool.query.selection.select import Subject, select

Method = Callable[[str], Iterable[int]]
"""From the text behind ``method:`` to nodes; a row set stands for its whole dataset."""

KINDS = ("table", "view", "materialized_view", "temporary", "query", "file", "function", "external")
"""The kinds of datasets, in any graph; see ``govtool.model.Derivation``."""
METHODS = (
    "class", "tag", "zone", "owner", "job", "run", "software", "kind", "changed", "opaque", "unused", "path",
    "resource_type",
)  # fmt: skip
_TERM = re.compile(r"(?P<at>@)?(?:(?P<up>\d{0,6})\+)?(?P<body>.+?)(?:\+(?P<down>\d{0,6}))?", re.DOTALL)
_LISTED = 8
"""Number of names that a hint lists."""
_BETWEEN = frozenset({*CONTRIBUTED, EdgeKind.OPAQUE})


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected datasets and columns, sorted by name; a dataset selected whole is not listed by column."""

    datasets: tuple[int, ...]
    columns: tuple[int, ...]

    def nodes(self, index: Index) -> tuple[int, ...]:
        """All columns, those of whole datasets too."""
        found = set(self.columns)
        for dataset in self.datasets:
            found.update(n for n in index.columns(dataset) if not index.is_unknown(n))
        return tuple(sorted(found))

    def __bool__(self) -> bool:
        """Return whether anything was."""
        return bool(self.datasets or self.columns)


def select_many(
    index: Index, texts: Sequence[str], *, exclude: Sequence[str] = (), methods: Mapping[str, Method] | None = None
) -> Selection:
    """Select columns and datasets.

    Args:
        index: The graph.
        texts: Selectors; several are a union. None at all selects every dataset.
        exclude: Selectors of what to leave out.
        methods: Methods that need more than the graph, by name.

    Raises:
        UnknownNameError: No such column, dataset or method.
        AmbiguousNameError: Several.
        UsageError: The text is not a selector (``usage.selector``).
    """
    if not texts and not exclude:
        return Selection(tuple(index.datasets()), ())
    selector = _Selector(index, methods or {})
    chosen = set(selector.everything()) if not texts else selector.union(texts)
    left_out = selector.union(exclude) if exclude else set()
    return _tidy(index, chosen - left_out, left_out)


def looks_selective(text: str) -> bool:
    """Return whether a text may be more than a name: it has a method, a pattern, an operator, or several parts."""
    bare = re.sub(r'"[^"]*"', "", text)
    return bool(re.match(r"[a-z_]+:(?!//)", bare) or re.search(r"[*?+@,\s]|^/.*/$", bare))


def subjects(index: Index, selection: Selection) -> tuple[Subject, ...]:
    """Return the selected subjects, one by one: whole datasets, then columns."""
    return (
        *(Subject(d, None, index.dataset_name(d)) for d in selection.datasets),
        *(Subject(index.node_dataset[n], n, index.name(n)) for n in selection.columns),
    )


def _tidy(index: Index, nodes: set[int], left_out: set[int]) -> Selection:
    """Whole datasets, and single columns; a dataset of which a column was removed is no longer whole."""
    holed = {index.node_dataset[n] for n in left_out}
    whole = {index.node_dataset[n] for n in nodes if index.is_rows(n) and index.node_dataset[n] not in holed}
    columns = [n for n in nodes if not index.is_rows(n) and index.node_dataset[n] not in whole]
    return Selection(tuple(sorted(whole)), tuple(sorted(columns)))


class _Selector:
    """Evaluates selectors over one graph; sets of nodes, a whole dataset with its row set and all its columns."""

    def __init__(self, index: Index, methods: Mapping[str, Method]) -> None:
        self.index = index
        self._paths: ColumnPaths | None = None
        own: dict[str, Method] = {
            "job": self._job,
            "kind": self._kind,
            "opaque": self._opaque,
            "path": self._path,
            "unused": self._unused,
        }
        self.methods = {**own, **methods}

    def everything(self) -> Iterable[int]:
        """All visible datasets."""
        return (n for d in self.index.datasets() for n in self._whole(d))

    def union(self, texts: Iterable[str]) -> set[int]:
        """The union of selectors."""
        found: set[int] = set()
        for text in texts:
            for group in _split(text, " "):
                found |= self._intersection(group)
        return found

    def _intersection(self, text: str) -> set[int]:
        parts = [self._term(part) for part in _split(text, ",")]
        if not parts:
            raise UsageError(f"{text[:80]!r} is not a selector", code="usage.selector", hint="govtool ls --help")
        return set.intersection(*parts)

    def _term(self, text: str) -> set[int]:
        found = _TERM.fullmatch(text)
        if found is None:
            raise UsageError(f"{text[:80]!r} is not a selector", code="usage.selector", hint="govtool ls --help")
        named = self._stage(text) if found["at"] else None
        if named is not None:
            return named
        if found["at"] and (found["up"] is not None or found["down"] is not None):
            raise UsageError(
                f"{text[:80]!r} is not a selector: @ goes both ways already",
                code="usage.selector",
                hint=f"'@{found['body'][:80]}', or '{found['body'][:80]}+' for what is downstream",
            )
        base = self._spelled(found)
        if found["at"]:
            below = base | self._spread(base, down=True, depth=None)
            return below | self._spread(below, down=False, depth=None)
        out = set(base)
        if found["up"] is not None:
            out |= self._spread(base, down=False, depth=int(found["up"]) if found["up"] else None)
        if found["down"] is not None:
            out |= self._spread(base, down=True, depth=int(found["down"]) if found["down"] else None)
        return out

    def _stage(self, text: str) -> set[int] | None:
        """What is called by a name that begins with ``@``, as stages of Snowflake do; a name is never an operator."""
        try:
            subject = select(self.index, text)
        except UnknownNameError:
            return None
        return set(self._whole(subject.dataset)) if subject.node is None else {subject.node}

    def _spelled(self, found: re.Match[str]) -> set[int]:
        """What the middle of a term selects; the nearest names of an error have the operators that were written.

        Raises:
            UnknownNameError: Nothing is called so.
            UsageError: Nothing is, as an operator stands where a name does.
        """
        body = found["body"]
        try:
            return self._base(body)
        except UnknownNameError as error:
            if error.code != "usage.unknown-column":
                raise
            if body.strip("+") == "" or body.startswith("@"):
                raise UsageError(
                    f"{found[0][:80]!r} is not a selector: an operator stands where a name should",
                    code="usage.selector",
                    hint="'@NAME', '+NAME', 'NAME+' or '2+NAME+1'",
                ) from error
            before, after = found[0][: found.start("body")], found[0][found.end("body") :]
            near = tuple(name if name.startswith('"@') else f"{before}{name}{after}" for name in error.nearest)
            raise UnknownNameError(error.message, code=error.code, nearest=near, hint=error.hint) from error

    def _base(self, text: str) -> set[int]:
        name, colon, value = text.partition(":")
        if colon and re.fullmatch(r"[a-z_]+", name) and not value.startswith("//") and name not in ("query", "file"):
            if name not in self.methods:
                raise UnknownNameError.of_few("method", name, METHODS)
            return self._closed(self.methods[name](renewed_text(value)))
        is_regex = len(text) > 2 and text[0] == text[-1] == "/"
        if is_regex or any(ch in re.sub(r'"[^"]*"', "", text) for ch in "*?"):
            return self._pattern(text)
        subject = select(self.index, text)
        return set(self._whole(subject.dataset)) if subject.node is None else {subject.node}

    def _pattern(self, text: str) -> set[int]:
        try:
            pattern = Pattern(text, self.index.paths_root)
        except ValueError as error:
            raise UsageError(str(error), code="usage.selector") from error
        index = self.index
        whole = [] if pattern.is_regex else pattern.datasets(index)
        found = {n for d in whole for n in self._whole(d)}
        self._paths = self._paths or ColumnPaths(index)
        return found | set(pattern.columns(index, self._paths))

    def _whole(self, dataset: int) -> Iterable[int]:
        yield self.index.rows(dataset)
        yield from (n for n in self.index.columns(dataset) if not self.index.is_unknown(n))

    def _closed(self, nodes: Iterable[int]) -> set[int]:
        """Row sets with their columns; hidden datasets left out."""
        index = self.index
        found: set[int] = set()
        for node in nodes:
            dataset = index.node_dataset[node]
            if not index.is_hidden(dataset):
                found.update(self._whole(dataset) if index.is_rows(node) else (node,))
        return found

    def _spread(self, nodes: set[int], *, down: bool, depth: int | None) -> set[int]:
        """Return everything derived from some nodes, or their sources, without them."""
        index, n = self.index, self.index.node_count
        kinds = None if any(index.is_rows(node) for node in nodes) else _BETWEEN
        if not nodes:
            return set()
        if down:
            column, rows = (int(state) * n for state in seed_states(Change()))
            seeds = [(rows if index.is_rows(node) else column) + node for node in nodes]
            reach = walk(index, seeds, rules(Change(), kinds=kinds), depth=depth)
        else:
            reach = walk(index, nodes, upstream_rules(kinds=kinds), backward=True, depth=depth)
        return self._closed(one.node for one in reach.ranking(nodes).shown)

    # Methods that need the graph alone.

    def _job(self, value: str) -> Iterable[int]:
        found = set(written_in(self.index, value))
        if not found and not any(fnmatchcase(name, value) for name in jobs(self.index)):
            raise unknown("job", value, jobs(self.index))
        return found

    def _kind(self, value: str) -> Iterable[int]:
        index = self.index
        kinds = {*KINDS, *(index.dataset_kind(d) for d in index.datasets())}
        if not any(fnmatchcase(kind, value) for kind in kinds):
            raise unknown("kind", value, kinds)
        return (index.rows(d) for d in index.datasets() if fnmatchcase(index.dataset_kind(d), value))

    def _path(self, value: str) -> Iterable[int]:
        """Datasets that a file defines: of this path, below this folder, or by a glob."""
        index, wanted = self.index, _normal_path(value)
        if wanted == "." or not value:
            raise UsageError("path: needs a file or folder", code="usage.selector", hint="path:models/staging")
        if index.paths_root:
            below = relative_id(wanted, index.paths_root)
            return self._made_at(wanted) or self._made_at(below) or self._no_path(value)
        return self._made_at(wanted) or self._no_path(value)

    def _made_at(self, wanted: str) -> list[int]:
        index, folder = self.index, wanted + "/"
        return [
            index.rows(dataset)
            for dataset in index.datasets()
            if any(
                file == wanted or file.startswith(folder) or fnmatchcase(file, wanted)
                for derivation in index.makers(dataset)
                for file in _places(index, derivation)
            )
        ]

    def _no_path(self, value: str) -> NoReturn:
        files = {self.index.text(number) for number in set(self.index.arrays["derivation_file"])}
        raise unknown("path", value, {*files, *(place for file in files for place in _folders(file))})

    def _opaque(self, value: str) -> Iterable[int]:
        """Columns and rows that an opaque edge enters; by a glob of the reason."""
        index = self.index
        for edge in range(index.edge_count):
            if index.kind(edge) is EdgeKind.OPAQUE and (not value or fnmatchcase(index.reason(edge) or "", value)):
                yield index.edge_target[edge]

    def _unused(self, value: str) -> Iterable[int]:
        """Columns that no statement uses; with ``unused:dataset``, datasets that nothing reads."""
        index = self.index
        for dataset in index.datasets():
            read = [
                e for e in index.out_edges(index.rows(dataset)) if index.node_dataset[index.edge_target[e]] != dataset
            ]
            if value == "dataset":
                if not read:
                    yield index.rows(dataset)
                continue
            if len(index.row_edges(dataset)) or _is_listed(index, dataset):
                continue
            for node in index.columns(dataset):
                around = (node, *index.containers(node), *index.fields(node))
                if not index.is_unknown(node) and not any(
                    len(index.out_edges(n)) or any(not _fills(index, one) for one in index.references(n))
                    for n in around
                ):
                    yield node


def _is_listed(index: Index, dataset: int) -> bool:
    """Return whether a statement takes all columns by their position: ``FROM t AS x(a, b)``."""
    return any(not index.names_own(one) for one in index.references(index.rows(dataset)))


def _fills(index: Index, reference: int) -> bool:
    """Return whether a statement names a column only to fill it."""
    return index.names_own(reference) and index.referred(reference) in index.outputs(index.referrer(reference))


def written_in(index: Index, value: str) -> Iterable[int]:
    """Select what statements of a file write; a glob of its path or of its name without the suffix."""
    for dataset in index.datasets():
        for derivation in index.makers(dataset):
            file = index.field(derivation, "file") or ""
            if fnmatchcase(file, value) or fnmatchcase(file.rpartition("/")[2].partition(".")[0], value):
                yield from index.outputs(derivation)


def _places(index: Index, derivation: int) -> Iterator[str]:
    """The file of a statement: from the folder that was ingested, and from where that folder was named."""
    file = index.field(derivation, "file") or ""
    yield file
    place = (index.field(derivation, "source") or "").partition(":")[2]
    if file and place:
        yield f"{place}/{file}"


def _normal_path(text: str) -> str:
    """A path without ``.``, ``..`` and doubled slashes; of a URI, its path.

    >>> _normal_path("models//staging/"), _normal_path("file:///data/./in")
    ('models/staging', 'file:///data/in')
    """
    scheme, separator, rest = text.partition("://")
    return f"{scheme}://{posixpath.normpath(rest)}" if separator and rest else posixpath.normpath(text)


def _folders(file: str) -> Iterable[str]:
    """The folders above a file, the nearest first."""
    while "/" in file:
        file = file.rpartition("/")[0]
        yield file


def jobs(index: Index) -> set[str]:
    """The files that statements are from, and their names without the suffix."""
    files = [index.text(number) for number in set(index.arrays["derivation_file"])]
    return {name for file in files for name in (file, file.rpartition("/")[2].partition(".")[0]) if name}


def unknown(kind: str, value: str, known: Iterable[str]) -> UnknownNameError:
    """Nothing is called so: a typing error, not an empty answer."""
    names = sorted(known)
    near = tuple(name for name in difflib.get_close_matches(value, names) if name != value)
    hint = None
    if not names:
        hint = f"nothing has a{'n' if kind == 'owner' else ''} {kind}"
    elif not near:
        hint = f"one of {', '.join(names[:_LISTED])}{', …' if len(names) > _LISTED else ''}"
    return UnknownNameError(f"no {kind} {value}", code=f"usage.unknown-{kind}", nearest=near, hint=hint)


def last_term(text: str) -> str:
    """Return the part of a selector to complete: its last name, pattern or method, with its operators.

    >>> last_term("class:personal,@zone:sh"), last_term("mart.** ")
    ('@zone:sh', '')
    """
    return _pieces(_pieces(text, " ")[-1], ",")[-1]


def _split(text: str, separator: str) -> list[str]:
    """Split outside quotes, brackets and regular expressions; empty pieces are dropped."""
    return [piece.strip() for piece in _pieces(text, separator) if piece.strip()]


def _pieces(text: str, separator: str) -> list[str]:
    pieces, start, quoted, depth, regex = [], 0, False, 0, False
    for i, ch in enumerate(text):
        if ch == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif ch == "/" and (i == start or regex):
            regex = not regex
        elif regex:
            continue
        elif ch in "[(":
            depth += 1
        elif ch in "])":
            depth -= 1
        elif depth <= 0 and (ch.isspace() if separator == " " else ch == separator):
            pieces.append(text[start:i])
            start = i + 1
    return [*pieces, text[start:]]
