"""Sources: their names, where each was read from, and what may replace what.

A source is named by the kind of its ingest and by its place, which is the path from the project's root:
``sql:warehouse/etl``; of what lies outside of the project, the last part of the path. So two folders of one name are
two sources, and an ingest of another kind never replaces one. The kind and the place stand beside the source's counts
in the store; an ingest that would replace what was read elsewhere is refused unless it is meant to. Sources of stores
that were written before had the folder's name only: the first ingest of the same folder takes such a source over, in
one commit.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import islice, product
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from govtool.answers.sources import SourceRow, SourcesAnswer
from govtool.app.coverage.sources import COVERAGE_TABLE, source_rows
from govtool.config import CONFIG_FILE, STORE_DIRECTORY, load_config, store_setting
from govtool.errors import UnknownNameError, UsageError
from govtool.given_files import absolute

if TYPE_CHECKING:
    from govtool.answers.coverage import SourceCoverage
    from govtool.store import Commit, CommitResult, FragmentRef, Reader, Store

_LONGEST = 200
"""The length of a place in characters; a longer one is cut, and ends in a digest of the whole."""
_STDIN = "stdin"
"""The place of what comes through a stream without a name."""
_COMMITS = 10_000
"""Number of commits that are searched for the last one of each source."""
_FILES = 200
"""Number of files of a source of an older store that are looked for in a folder."""


@dataclass(frozen=True, slots=True)
class SourceOrigin:
    """The place that a source is read from."""

    kind: str
    """``sql``, ``log``, ``dbt``, ``catalog``, ``openlineage``, ``prov`` or ``spark``."""
    place: str
    """Paths from the project's root, joined by ``+``; of a catalog, the address without secrets."""
    root: Path | None = field(default=None, compare=False)
    """The folder of its files on this machine, where there is one and lineage is stated of files, not of jobs."""
    former: str = field(default="", compare=False)
    """The name by default in older stores; empty: the user named the source."""
    replace: bool = field(default=False, compare=False)
    """True: a source that was read elsewhere is replaced."""
    nameless: bool = field(default=False, compare=False)
    """True of standard input without a name: it may be the same as before or another."""

    @property
    def mark(self) -> str:
        """The origin within the key of an ingest, so that the manifest alone shows that it is the same."""
        return f"@{hashlib.sha256(str(self).encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"

    def __str__(self) -> str:
        """The kind and the place as people read them."""
        return f"{self.kind}:{self.place}"


def named_source(
    kind: str,
    paths: Sequence[str],
    name: str | None,
    *,
    store: Reader,
    replace: bool = False,
    root: Path | None = None,
) -> tuple[str, SourceOrigin]:
    """Return the name of a source, the one given or that by default, and its origin."""
    place, last = place_of(paths, store), former_name(paths)
    within = not any(Path(part).is_absolute() for part in place.split("+"))
    nameless = not name and any(map(is_stream, paths))
    origin = SourceOrigin(kind, place, root, "" if name else last, replace, nameless)
    return name or f"{kind}:{place if within else last}", origin


def is_stream(path: str) -> bool:
    """Return whether a path is stdin or a stream that a shell opened, ``<(…)``: its name is another each time."""
    return path == "-" or path.startswith(("/dev/fd/", "/proc/self/fd/", "/dev/stdin"))


def place_of(paths: Sequence[str], store: Reader) -> str:
    """Paths from the project's root; those outside of it are absolute. ``..``, ``.`` and links are resolved.

    A link that leads out of the project stays as it is written: where it leads is another place on each machine.
    """
    here = project_root()
    keeps = lru_cache(maxsize=None)(partial(_keeps, store=store))  # of one call: settings may change before the next
    places = {_STDIN if is_stream(path) else _from(_root_above(path, store, keeps) or here, path) for path in paths}
    return _short("+".join(sorted(places)))


def _root_above(path: str, store: Reader, keeps: Callable[[Path], bool]) -> Path | None:
    """The outermost folder above a path whose settings or own store are the store that is written to.

    So a folder that is read from outside of its project has the name that it has within.
    """
    if store.uri.startswith("memory:"):
        return None
    found = None
    for folder in Path(path).resolve().parents:
        if keeps(folder):
            found = folder
    return found


def _keeps(folder: Path, store: Reader) -> bool:
    """True if a folder has settings or a store of its own, and its settings name this store."""
    # ``Path.is_file`` raises in a folder without rights; such a one keeps nothing that could be read.
    if not (os.path.isfile(folder / CONFIG_FILE) or os.path.isdir(folder / STORE_DIRECTORY)):  # noqa: PTH112, PTH113
        return False
    try:
        named = str(store_setting(None, load_config(folder), {}).value)
    except UsageError:  # settings of another project, which are none of ours to judge
        return False
    return _normal(named) == _normal(store.uri)


def _normal(uri: str) -> str:
    return (
        uri.rstrip("/")
        if "://" in uri and not uri.startswith("file://")
        else os.path.realpath(uri.removeprefix("file://"))
    )


def former_name(paths: Sequence[str]) -> str:
    """The name that a source had by default in older stores: the last part of its path."""
    names = {_STDIN if is_stream(path) else Path(path).resolve().name or "root" for path in paths}
    return _short("+".join(sorted(names)))


def project_root() -> Path:
    """The folder of ``govtool.toml`` or of the store, else of the Git repository, else the working directory."""
    here = Path.cwd()
    config = load_config(here)
    if config.file is not None or (config.root / ".govtool").is_dir():
        return config.root
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def check_replacement(store: Store, branch: str, name: str, origin: SourceOrigin | None) -> tuple[str, ...]:
    """Return the sources that an ingest takes over beside its own: that of an older store, by its former name.

    Raises:
        UsageError: The source was read from another place or by another kind of ingest (``usage.source-replaced``).
        StoreError: The store cannot be read.
    """
    head = store.seen(branch)
    if head is None or origin is None:
        return ()
    batches = store.batches(head, name)
    if batches and origin.nameless and not origin.replace:
        raise UsageError(
            f"source {name} was read from another standard input; nothing was committed",
            code="usage.source-replaced",
            hint="--source NAME for each, or --replace to put this in its place",
        )
    if batches and all(origin.mark in batch for batch in batches):
        return ()
    counted = _counted(store, head, name)
    if counted is not None:
        _check_origin(name, origin, _origin(store, counted))
        return ()
    former = _counted(store, head, origin.former) if origin.former else None
    if former is None or _origin(store, former) is not None or not _agrees(store, head, origin):
        return ()
    return (origin.former,)


def _check_origin(name: str, origin: SourceOrigin, earlier: SourceOrigin | None) -> None:
    if earlier is None or origin.replace or earlier == origin:
        return
    together = (
        "; logs of one source are read together: give their folder" if origin.kind == earlier.kind == "log" else ""
    )
    raise UsageError(
        f"source {name} was read from {earlier}, and this is {origin}; nothing was committed",
        code="usage.source-replaced",
        hint=f"--replace to put this in its place, or --source NAME to keep both{together}",
    )


def overlapping_sources(store: Store, branch: str, name: str, origin: SourceOrigin) -> tuple[str, ...]:
    """The live sources of the same kind whose places are also those of this one: a folder within it.

    Runs of a workflow are none of them: they count no statements. In a remote store, where each list of fragments and
    each place costs a request, only a source that is new is compared; and a place is asked for where the name does
    not tell it only if this one lies outside of the project.
    """
    head = store.seen(branch)
    if head is None or (store.is_remote and store.batches(head, name)):
        return ()
    outside = any(Path(part).is_absolute() for part in origin.place.split("+"))
    found = set()
    for ref in store.fragments(head):
        kind, _, place = ref.source.partition(":")
        if ref.table != COVERAGE_TABLE or ref.source == name:
            continue
        if kind != origin.kind or outside:
            if store.is_remote and not outside:
                continue
            other = _origin(store, ref)
            kind, place = ("", "") if other is None else (other.kind, other.place)
        if kind == origin.kind and _overlap(place, origin.place):
            found.add(ref.source)
    return tuple(sorted(found))


def _overlap(place: str, other: str) -> bool:
    """True if a path of one place is, or lies in, a path of the other; each may be several, joined by ``+``.

    What came through stdin twice is not the same.
    """
    paths = ([PurePosixPath(path) for path in each.split("+") if path != _STDIN] for each in (place, other))
    pairs = product(*paths)
    return any(one.is_relative_to(two) or two.is_relative_to(one) for one, two in pairs)


def list_sources(store: Reader, commit: Commit) -> SourcesAnswer:
    """Return the live sources of a commit, by name, each with the last commit that changed it.

    Raises:
        StoreError: A fragment or a commit cannot be read.
    """
    rows = sorted(source_counts(store, commit), key=lambda row: row.source)
    wanted = {row.source for row in rows}
    last: dict[str, Commit] = {}
    for each in islice(store.history(commit), _COMMITS):
        for name in wanted.intersection(each.sources):
            last.setdefault(name, each)
        if len(last) == len(wanted):
            break
    return SourcesAnswer(store.uri, commit, tuple(SourceRow(row, last.get(row.source)) for row in rows))


def drop_source(store: Store, name: str, *, message: str | None, author: str, branch: str) -> CommitResult:
    """Retract everything that a source has put into the graph. Earlier versions keep it.

    Raises:
        UnknownNameError: There is no such source at the head of the branch (``usage.unknown-source``).
        StoreError: The commit could not be written; the store is as it was.
    """
    from govtool.store import Changes

    head = store.base(branch)
    names = sorted({ref.source for ref in store.fragments(head)}) if head is not None else []
    if head is None or name not in names:
        raise unknown_source(name, names)
    return store.commit(
        Changes(retract=(name,)),
        message=message or f"sources drop {name}",
        author=author,
        batch=f"drop:{head.id}",
        summary={"command": "sources drop", "source": name},
        branch=branch,
    )


def unknown_source(name: str, names: Iterable[str]) -> UnknownNameError:
    """The error of a source that there is not; a former name, without a kind, is near to those that end in it."""
    import difflib

    known = list(names)
    ending = [each for each in known if each.rpartition(":")[2].rpartition("/")[2] == name]
    nearest = tuple(dict.fromkeys([*ending, *difflib.get_close_matches(name, known)]))[:5]
    return UnknownNameError(f"no source {name}", code="usage.unknown-source", nearest=nearest, hint="govtool sources")


def source_counts(store: Reader, commit: Commit) -> Iterator[SourceCoverage]:
    """The counts of every live source of a commit, with its kind and place.

    Raises:
        StoreError: A fragment cannot be read.
    """
    for ref in store.fragments(commit):
        if ref.table == COVERAGE_TABLE:
            yield from source_rows(store.read(ref))


def _counted(store: Reader, commit: Commit, source: str) -> FragmentRef | None:
    """The fragment with a source's counts; None if there is no such source."""
    return next((ref for ref in store.fragments_of(commit, source) if ref.table == COVERAGE_TABLE), None)


def _origin(store: Reader, ref: FragmentRef) -> SourceOrigin | None:
    """The origin that was recorded with a source; None in an older store."""
    return next((SourceOrigin(row.kind, row.place) for row in source_rows(store.read(ref)) if row.kind), None)


def _agrees(store: Store, head: Commit, origin: SourceOrigin) -> bool:
    """True if a source of an older store was read by the same kind of ingest, and from the same files."""
    commits = islice(store.history(head), _COMMITS)
    command = next((c.summary.get("command") for c in commits if c.summary.get("source") == origin.former), None)
    if command != f"ingest {origin.kind}":
        return False
    if origin.root is None:
        return True
    files = _files(store, head, origin.former)
    there = sum((origin.root / file).exists() for file in files)
    return 2 * there >= len(files)


def _files(store: Store, head: Commit, source: str) -> list[str]:
    """Some files that the lineage of a source names."""
    from govtool.model.columnar import DERIVATIONS, decode

    files: dict[str, None] = {}
    for ref in store.fragments_of(head, source):
        if ref.table == DERIVATIONS and len(files) < _FILES:
            files.update(dict.fromkeys(each.statement.file for each in decode(store.read(ref))))
    return [file for file in islice(files, _FILES) if not file.startswith("<")]


def _from(root: Path, path: str) -> str:
    for whole in (Path(path).resolve(), absolute(path)):
        if whole.is_relative_to(root):
            return whole.relative_to(root).as_posix()
        if whole.is_relative_to(root.resolve()):
            return whole.relative_to(root.resolve()).as_posix()
    return Path(path).resolve().as_posix()


def _short(joined: str) -> str:
    text = joined.encode("utf-8", "backslashreplace").decode()
    if len(text) <= _LONGEST:
        return text
    return f"{text[:40]}+{hashlib.sha256(text.encode()).hexdigest()[:12]}"
