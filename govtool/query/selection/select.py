"""From the text of a column or dataset to nodes of the graph: the shortest unambiguous suffix will do."""

from __future__ import annotations

import re
import shlex
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches

from govtool.arrays.suffix import parts_of
from govtool.errors import AmbiguousNameError, UnknownNameError, UsageError
from govtool.graph.index import Index
from govtool.model.derivation import ROWS
from govtool.names import join_name, place_of_id, quote, relative_id, split_name, unquote, written_id

MOST_PARTS = 500
"""Parts of a name that are looked up: each may be where a dataset ends and a column begins."""
CANDIDATES = 20
"""Candidates of an ambiguous name that are listed."""
_POOL = 2000
"""Names whose nearness is measured: of more, those that share most of their letters with what was written."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a question: a column, or a dataset with its rows and columns."""

    dataset: int
    node: int | None
    """The column's node; ``None`` for a dataset. A row set (``dataset.*``) is a dataset."""
    text: str
    """Canonical text."""

    @property
    def is_dataset(self) -> bool:
        """True if it is a dataset."""
        return self.node is None


_STARS_IN_PART = re.compile(r"[^.,\s*][*]{2,}|(?<![*])[*]{2,}+[^.,\s*]")
_STARS_FIRST = re.compile(r"(?:\*\.)+(?=[^.*,\s])")


def nothing_selected(shown_by: str = "govtool ls SELECTOR", texts: Sequence[str] = ()) -> UsageError:
    """A selection of nothing, where something is asked about what is selected.

    Args:
        shown_by: The command that shows what there is.
        texts: The selectors; one that takes ``*`` and ``**`` for each other is named in the hint.
    """
    hint = f"{shown_by} shows what is; --allow-empty where that is no mistake"
    mistaken = next((text for text in texts if "/" not in text and _STARS_IN_PART.search(text)), None)
    if mistaken is not None:
        parts = mistaken[:80].split(".")
        written = ".".join(part if part == "**" else re.sub(r"[*]{2,}", "*", part) for part in parts)
        before = "**." if parts[0].startswith("**") and parts[0] != "**" else ""
        hint = f"** stands for whole parts of a name: write '{before}{written}'"
    elif one := next((text for text in texts if _STARS_FIRST.match(text)), None):
        hint = f"* stands for one part of a name, ** for any number: try '{_STARS_FIRST.sub('**.', one[:80], count=1)}'"
    return UsageError("nothing is selected", code="usage.nothing-selected", hint=hint)


def select(index: Index, text: str) -> Subject:
    """Find a column or a dataset by its name or any unambiguous end of it.

    The full name of a column or dataset wins over longer names that end alike. Letter case and missing quotes are
    forgiven where nothing has exactly the written name.

    Raises:
        UnknownNameError: ``usage.unknown-column``, with the nearest names.
        AmbiguousNameError: ``usage.ambiguous-column``, with the candidates.
        UsageError: ``usage.name``, it has more parts than any name.
    """
    if text.count(".") > MOST_PARTS:
        raise UsageError(f"a name of more than {MOST_PARTS} parts", code="usage.name", hint="govtool ls SELECTOR")
    spellings = _spellings(text, index.paths_root)
    for written in spellings:
        found = _exact(index, written)
        if found:
            return found
    for written in spellings:
        matches, more = _matches(index, written)
        if len(matches) == 1:
            return matches[0]
        if matches:
            names = tuple(sorted(s.text for s in matches))
            count = f"{len(names)}{' or more' if more else ''}"
            raise AmbiguousNameError(
                f"{text!r} may be {count} columns or datasets",
                code="usage.ambiguous-column",
                nearest=names[:CANDIDATES],
                hint=f"write more of the name, such as {min(names, key=_is_odd)}",
            )
    near = nearest(index, text)
    raise UnknownNameError(
        f"No column or dataset is called {text!r}",
        code="usage.unknown-column",
        nearest=near,
        hint=_remedy(index, text, near),
    )


def _is_odd(name: str) -> bool:
    """Return whether a name needs quotes, which a shell takes away."""
    return '"' in name


def _remedy(index: Index, text: str, near: Sequence[str]) -> str:
    """What to do where nothing has a name; a schema or a zone of names is selected by a pattern."""
    if index.dataset_count == 0:
        return "govtool ingest sql FOLDER"
    first = bisect_left(range(index.dataset_count), f"{text}.", key=index.dataset_name)
    if first < index.dataset_count and index.dataset_name(first).startswith(f"{text}."):
        return f"'{text}.**' selects all that begins with {text}"
    if near and len(split_name(text)) > 1 and index.find_dataset(near[0]) is not None:
        return f"govtool explain {shlex.quote(near[0])} lists its columns"
    return "govtool explain DATASET lists the columns of a dataset"


def complete(index: Index, typed: str, limit: int = 200) -> list[str]:
    """Full names of datasets and columns that begin, or have a part that begins, as typed; for completion."""
    names: list[str] = []
    owner, dot, _ = typed.rpartition(".")
    if dot:
        for dataset in _datasets(index, owner, limit):
            stem = index.dataset_name(dataset)
            columns = (f"{stem}.{index.path(n)}" for n in index.columns(dataset) if not index.is_unknown(n))
            names += [n for n in columns if n.startswith(typed) or f".{n}".find(f".{typed}") >= 0]
    low = bisect_left(range(index.dataset_count), typed, key=index.dataset_name)
    while low < index.dataset_count and len(names) < limit and (name := index.dataset_name(low)).startswith(typed):
        if not index.is_hidden(low):
            names.append(name)
        low += 1
    return list(dict.fromkeys(names))[:limit]


def nearest(index: Index, text: str, count: int = 3) -> tuple[str, ...]:
    """Names that may have been meant, best first."""
    parts = split_name(text)
    found: list[str] = []
    for cut in (len(parts) - 1, len(parts)):
        # The dataset is right and the column is not: offer its columns.
        for dataset in _datasets(index, join_name(parts[:cut]), 3) if cut else ():
            columns = index.columns(dataset)[:_POOL]
            wanted = join_name(parts[cut:])
            close = get_close_matches(wanted, [index.path(n) for n in columns], count, 0.5) if wanted else []
            found += [f"{index.dataset_name(dataset)}.{path}" for path in close]
    if len(found) < count:
        more = _near_datasets(index, parts, count)
        # Where a column of the very dataset is meant, other columns may be too, but no dataset.
        found += [name for name in more if index.find_dataset(name) is None] if found else more
    if not found and len(parts) > 1:  # no dataset is called so, but columns are
        found = sorted(index.name(node) for node in _columns(index, parts[-1], count))
    return tuple(dict.fromkeys(found))[:count]


def _near_datasets(index: Index, parts: list[str], count: int) -> list[str]:
    """Datasets with a similar name, and their column of that name if the last part is one.

    Datasets without such a column are given only if none has one.
    """
    cuts = [cut for cut in (len(parts) - 1, len(parts)) if cut]
    like = [wanted.lower() for cut in cuts for wanted in (join_name(parts[:cut]), parts[cut - 1])]
    pool = index.name_pool(_POOL, like)
    last: dict[str, int] = {}
    for d in pool:
        last.setdefault(parts_of(index.dataset_name(d))[-1].lower(), d)
        last.setdefault(index.dataset_name(d).lower(), d)
    best: dict[int, tuple[float, str, bool]] = {}
    for cut in cuts:
        path = join_name(parts[cut:])
        for wanted in (join_name(parts[:cut]).lower(), parts[cut - 1].lower()):
            for close in get_close_matches(wanted, list(last), count, 0.6):
                dataset = last[close]
                column = _near_column(index, dataset, path) if path else None
                name = index.name(column) if column is not None else index.dataset_name(dataset)
                found_as = (SequenceMatcher(None, wanted, close).ratio(), name, bool(path) and column is None)
                best[dataset] = max(best.get(dataset, found_as), found_as)
    by_likeness = sorted(best.values(), key=lambda one: one[0], reverse=True)
    found = [name for _, name, lacks in by_likeness if not lacks] or [name for _, name, _ in by_likeness]
    paths = index.path_pool(_POOL, [parts[-1].lower()]) if len(parts) == 1 else {}
    found += [index.name(paths[close]) for close in get_close_matches(parts[-1], list(paths), count, 0.7)]
    return found


def _near_column(index: Index, dataset: int, path: str) -> int | None:
    """The column of a dataset that a path names, or nearly does."""
    column = index.find_column(dataset, path)
    if column is not None:
        return column
    near = get_close_matches(path, [index.path(n) for n in index.columns(dataset)[:_POOL]], 1, 0.5)
    return index.find_column(dataset, near[0]) if near else None


def _spellings(text: str, root: str) -> list[str]:
    """The text as written; as the graph writes a path, which may be plain, absolute and below the root; with quotes; in
    lower case; and as the name of a file that SQL reads or writes, one quoted part.
    """
    written = written_id(text.strip())
    if written.startswith("/"):
        written = f"file://{written}"
    parts = split_name(text.strip())
    quoted = [p if "[" in p or "/" in p or ":" in p or p == ROWS else quote(unquote(p)) for p in parts]
    below = [relative_id(written, root)] if root else []
    lower = [p if "[" in p or p.startswith('"') else p.lower() for p in parts]
    return list(dict.fromkeys([text.strip(), written, *below, join_name(quoted), join_name(lower), *_files(written)]))


def _files(text: str) -> list[str]:
    """What a path may mean where SQL names a file: that file, or a column of it. ``data/c.csv``, ``file:///c.csv.a``."""
    place = place_of_id(text)
    path = place[1] if place is not None and place[0] == "file" else text
    if "/" not in path or '"' in path or "://" in path:
        return []
    head, dot, column = path.rpartition(".")
    return [quote(path), *([f"{quote(head)}.{column}"] if dot and "/" not in column else [])]


def _exact(index: Index, text: str) -> Subject | None:
    dataset = index.find_dataset(text)
    if dataset is not None:
        return Subject(dataset, None, text)
    parts = split_name(text)
    for cut in range(len(parts) - 1, 0, -1):
        dataset = index.find_dataset(join_name(parts[:cut]))
        if dataset is not None:
            found = _in_dataset(index, dataset, join_name(parts[cut:]))
            if found:
                return found
    return None


def _in_dataset(index: Index, dataset: int, path: str) -> Subject | None:
    node = index.find_column(dataset, path)
    if node is None:
        return None
    if path == ROWS:
        return Subject(dataset, None, index.dataset_name(dataset))
    return Subject(dataset, node, index.name(node))


def _matches(index: Index, text: str) -> tuple[list[Subject], bool]:
    """Everything whose name ends in the text, up to a bound; and whether there is more."""
    found: dict[tuple[int, int | None], Subject] = {}
    parts = split_name(text)
    bound = CANDIDATES * 5
    for dataset in _datasets(index, text, bound):
        found[dataset, None] = Subject(dataset, None, index.dataset_name(dataset))
    for cut in range(len(parts) - 1, 0, -1):
        for dataset in _datasets(index, join_name(parts[:cut]), bound):
            subject = _in_dataset(index, dataset, join_name(parts[cut:]))
            if subject:
                found[subject.dataset, subject.node] = subject
    for node in _columns(index, text, bound):
        found[index.node_dataset[node], node] = Subject(index.node_dataset[node], node, index.name(node))
    return list(found.values()), len(found) >= bound


def _datasets(index: Index, text: str, limit: int) -> list[int]:
    """Datasets whose name ends in the text."""
    return index.ending_datasets(parts_of(text), limit)


def _columns(index: Index, text: str, limit: int) -> list[int]:
    """Columns whose path ends in the text."""
    return index.ending_columns(parts_of(text), limit)
