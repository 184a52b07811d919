"""Removes text, a run's private records or a source from all versions of a store (``govtool.store.upkeep.forget``)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from govtool import clock
from govtool.answers.forget import ForgetAnswer, Remainder, RemovedFragment
from govtool.app.project.project import existing_branch
from govtool.app.project.sources import unknown_source
from govtool.app.project.user import user_name
from govtool.app.upkeep.fragment_text import SHORTEST, TextForms, rows_without
from govtool.app.upkeep.named_runs import unknown_run, written_by
from govtool.app.upkeep.record_fragments import RecordFragments, read_record_fragments
from govtool.errors import ConflictError, IntegrityError, StoreError, UsageError
from govtool.model.records import PRIVATE_POSITIONS, PRIVATE_VALUES, RECORD_RUNS, RECORD_TABLES
from govtool.store import Store, cache
from govtool.store.backends.remembered import RememberedObjects
from govtool.store.names import FORGOTTEN
from govtool.store.tombstones import FragmentName, Tombstones, read_tombstones
from govtool.store.upkeep.forget import (
    Forgotten,
    ForgottenMeanwhileError,
    Removal,
    StandIn,
    forget,
    fragments_in_history,
)
from govtool.store.upkeep.gc import collect

if TYPE_CHECKING:
    from govtool.store import FragmentRef

Progress = Callable[[int, int], None]
_History = Mapping[tuple[str, str], Sequence["FragmentRef"]]
_Chosen = dict[tuple[str, str], "StandIn | None"]
_UNUSED = ("frag/", "pack/", "tmp/")
"""Folders in which a writer that was killed leaves objects that no version refers to."""
_UNREAD = (
    "damaged, so it could not be looked through: restore it from a backup and run this again,"
    " or remove all of its source: --source '{}'"
)
_ROUNDS = 20
"""How often others may remove something while a request is carried out."""
_CACHES = ("blobs", "memos", "sidecars")
"""Folders of the local cache that hold copies of text; what is in them is made again when it is needed."""


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """A request to remove texts, runs or sources; at least one of them is named."""

    texts: Sequence[str] = ()
    """Texts that are replaced by ``***`` wherever they occur."""
    runs: Sequence[str] = ()
    """Runs, or applications with all their runs, whose private values and positions are removed. Also runs of
    workflows by their ids, and the last runs of workflows and jobs by their names (``NAME~1``: the one before)."""
    sources: Sequence[str] = ()
    """Sources that are removed from all versions."""
    reason: str = ""
    """Kept in the store; it must not repeat what is removed."""
    dry_run: bool = False
    branch: str | None = None
    author: str | None = None
    message: str | None = None


def forget_text(store: Store, request: ForgetRequest, progress: Progress | None = None) -> ForgetAnswer:
    """Remove what a request names from every version of every branch.

    Raises:
        UsageError: nothing is named, or a text is too short.
        UnknownNameError: no fragment is of such a run or source.
        StoreError: the store cannot be read or written. The same request again completes what was begun.
    """
    if not (request.texts or request.runs or request.sources):
        raise UsageError(
            "nothing to remove", code="usage.arguments", hint="give --text-file FILE, --run RUN or --source NAME"
        )
    forms = TextForms(request.texts) if request.texts else None
    _check_words(request, forms)
    store = Store(RememberedObjects(store.objects), store.store_id)  # the history is looked at many times
    branch = existing_branch(store, request.branch)
    request = replace(request, runs=_named(store, branch, request.runs))
    found = _look_through(store, request, forms, progress, {})
    done = Forgotten(())
    if (found.chosen or request.sources) and not request.dry_run:
        found, done = _remove(store, request, forms, branch, found)
    emptied = () if request.dry_run else _empty_caches(store)
    held = _held(store, forms) if forms else ()
    return ForgetAnswer(
        store.uri,
        request.dry_run,
        tuple(_removed(found.history, found.chosen)),
        commits=tuple((commit.branch, commit.seq, commit.id) for commit in done.commits),
        objects=done.removed,
        indexes=done.indexes,
        caches=emptied,
        held=(*_shared(found.history, request.sources), *found.doubts, *held),
        lost=tuple(_lost(found.history[name][0]) for name in done.lost),
        unreached=_unreached(store),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What a request removes, of a store at one time."""

    known: Tombstones
    history: _History
    chosen: _Chosen
    doubts: list[Remainder]
    """What could not be looked through."""

    def and_then(self, later: _Found) -> _Found:
        """This, and what was found later."""
        history, chosen = {**self.history, **later.history}, {**self.chosen, **later.chosen}
        return _Found(later.known, history, chosen, [*self.doubts, *later.doubts])


def _look_through(
    store: Store, request: ForgetRequest, forms: TextForms | None, progress: Progress | None, before: _History
) -> _Found:
    """Look through every fragment, or through those that were not there before.

    Stand-ins of earlier removals are not removed; where they hold the text, the answer says so.
    """
    known = read_tombstones(store.objects)
    everything = fragments_in_history(store)
    history = {name: refs for name, refs in everything.items() if refs[0].source != FORGOTTEN and name not in before}
    if before and not history:
        return _Found(known, {}, {}, [])
    chosen, doubts = _chosen(store, history, request, forms, progress, again=bool(before))
    return _Found(known, history, chosen, doubts)


def _remove(
    store: Store, request: ForgetRequest, forms: TextForms | None, branch: str, found: _Found
) -> tuple[_Found, Forgotten]:
    """Remove what was found, and what others committed meanwhile; return all of it, and what became of it.

    Raises:
        ConflictError: Others forget all the time.
    """
    removed, done = _Found(found.known, {}, {}, []), Forgotten(())
    for _ in range(_ROUNDS):
        count = len(found.chosen)
        message = request.message or f"forget {count} fragment{'' if count == 1 else 's'}"
        removal = Removal(found.chosen, frozenset(request.sources), request.reason)
        author = request.author or user_name()
        try:
            made = forget(store, removal, branch, author=author, message=message, known=found.known)
        except ForgottenMeanwhileError:
            pass  # what was to stand in the place of fragments may hold what the other command removed
        else:
            removed, done, request = removed.and_then(found), done.and_then(made), replace(request, sources=())
        found = _look_through(store, request, forms, None, removed.history)
        if not (found.chosen or request.sources):
            return removed.and_then(found), done
    raise ConflictError("others remove data from this store all the time", hint="run it again")


def _chosen(
    store: Store,
    history: _History,
    request: ForgetRequest,
    forms: TextForms | None,
    progress: Progress | None,
    *,
    again: bool,
) -> tuple[_Chosen, list[Remainder]]:
    """What a request removes, and what could not be looked through; ``again``: nothing of a run may be left."""
    chosen = _of_sources(history, request.sources)
    doubts: list[Remainder] = []
    if request.runs:
        records = read_record_fragments(store, (RECORD_RUNS, PRIVATE_VALUES))
        of_runs, doubts = _of_runs(store, history, request, records, again=again)
        chosen.update(of_runs)
    if forms is not None:
        with_text, unread = _with_text(store, history, forms, progress, chosen)
        chosen.update(with_text)
        doubts += unread
    return chosen, doubts


def _named(store: Store, branch: str, runs: Sequence[str]) -> tuple[str, ...]:
    """Runs, with those of workflows and jobs by the ids of what they wrote; other names stay as they are."""
    head = store.head(branch) if runs else None
    named = {run: written_by(store, head, run) if head is not None else () for run in runs}
    return tuple(dict.fromkeys(each for run, ids in named.items() for each in (ids or (run,))))


def _check_words(request: ForgetRequest, forms: TextForms | None) -> None:
    """Refuse a commit whose own words hold the text that is to be removed."""
    words = (request.reason, request.message or "", request.author or "")
    if forms is not None and any(map(forms.in_text, words)):
        raise UsageError("the reason, message or author of the commit contains the text to remove", code="usage.text")


def _of_sources(history: _History, sources: Sequence[str]) -> _Chosen:
    """The fragments that no source but the named ones has."""
    wanted = set(sources)
    known = {ref.source for refs in history.values() for ref in refs}
    for source in sources:
        if source not in known:
            raise unknown_source(source, sorted(known))
    return {name: None for name, refs in history.items() if {ref.source for ref in refs} <= wanted}


def _shared(history: _History, sources: Sequence[str]) -> Iterator[Remainder]:
    """Fragments of the named sources that others have, too."""
    wanted = set(sources)
    for (table, sha256), refs in history.items():
        others = {ref.source for ref in refs} - wanted
        if others and len(others) < len({ref.source for ref in refs}):
            yield Remainder(f"{table}/{sha256[:12]}", f"source {', '.join(sorted(others))} has the same content")


def _of_runs(
    store: Store, history: _History, request: ForgetRequest, found: RecordFragments, *, again: bool
) -> tuple[_Chosen, list[Remainder]]:
    """The private values and positions of runs, removed from their fragments; and what may be of them, and stays."""
    names: set[str] = set()
    whole: set[FragmentName] = set()
    doubtful: set[FragmentName] = set()
    for run in request.runs:
        parts = found.parts_of(
            lambda name, run=run: _is_part(name, run),  # type: ignore[misc]
            lambda source, run=run: _is_known(store, history, source, run),  # type: ignore[misc]
        )
        if not (parts.runs or parts.fragments or again):
            raise unknown_run(store, store.head(existing_branch(store, request.branch)), run, found)
        names, whole, doubtful = names | parts.runs, whole | parts.fragments, doubtful | parts.doubtful
    for group in found.groups:
        whole.update((PRIVATE_POSITIONS, group.runs[name].positions) for name in names & group.runs.keys())
    chosen: _Chosen = {name: None for name in whole if name in history}
    for name, refs in history.items():
        # Several runs may share a fragment of values: the others keep theirs, in a fragment that stands in for it.
        data = _read(store, refs[0]) if name[0] == PRIVATE_VALUES and name not in found.damaged else None
        if data is not None and (left := rows_without(data, "run", sorted(names))) is not None:
            chosen[name] = StandIn(*left)
    return chosen, [_doubtful(name, history[name]) for name in sorted(doubtful - whole) if name in history]


def _doubtful(name: FragmentName, refs: Sequence[FragmentRef]) -> Remainder:
    reason = (
        "damaged, or named by what is damaged, and perhaps of this run: restore it from a backup and run this again,"
        f" or remove all of its source: --source '{refs[0].source}'"
    )
    return Remainder(_short(name), reason)


def _short(name: FragmentName) -> str:
    return f"{name[0]}/{name[1][:12]}"


def _is_known(store: Store, history: _History, source: str, run: str) -> bool:
    """Return whether a fragment of a source that is none of records names a run."""
    if len(run) < SHORTEST:
        return False
    forms = TextForms([run])
    refs = (refs[0] for (table, _), refs in history.items() if table not in RECORD_TABLES)
    return any(forms.in_fragment(_content(store, ref)[0]) for ref in refs if ref.source == source)


def _is_part(name: str, run: str) -> bool:
    """Return whether a run is the one that is meant, or one of an application."""
    return name == run or name.startswith(f"{run}/")


def _read(store: Store, ref: FragmentRef) -> bytes | None:
    """The content of a fragment, or of what stands in its place; None where it was removed without one.

    Raises:
        StoreError: It cannot be read.
    """
    try:
        return store.read(ref)
    except StoreError as error:
        if error.code == "store.forgotten":
            return None
        raise


def _content(store: Store, ref: FragmentRef) -> tuple[bytes, bool]:
    """The bytes of a fragment, and whether they are as they were written; of a damaged one, what is left."""
    try:
        return _read(store, ref) or b"", True
    except IntegrityError:
        data = store.objects.get(ref.key) or b""
        return (data[ref.offset : ref.offset + ref.size] if ref.pack else data), False


def _with_text(
    store: Store, history: _History, forms: TextForms, progress: Progress | None, chosen: _Chosen
) -> tuple[_Chosen, list[Remainder]]:
    """Fragments that hold a text, each with what is read instead; of those chosen before what stands in their place.

    Also those that are damaged so that they cannot be looked through.
    """
    found: _Chosen = {}
    unread: list[Remainder] = []
    for done, (name, refs) in enumerate(history.items(), 1):
        stands = chosen.get(name)
        if name in chosen:
            data, sound = (stands.data if stands is not None else b""), True
        else:
            data, sound = _content(store, refs[0])
        if data and forms.in_fragment(data):
            left = forms.without(data) if sound else None
            # Where the names of columns hold it, nothing can stand in its place; nor for what is damaged.
            found[name] = None if left is None or forms.in_fragment(left[0]) else StandIn(*left)
        elif data and not (sound and forms.can_read(data)):
            unread.append(Remainder(_short(name), _UNREAD.format(refs[0].source)))
        if progress:
            progress(done, len(history))
    return found, unread


def _removed(history: _History, chosen: _Chosen) -> Iterator[RemovedFragment]:
    for table, sha256 in sorted(chosen):
        sources = tuple(sorted({ref.source for ref in history[table, sha256]}))
        yield RemovedFragment(table, sha256, sources, chosen[table, sha256] is not None)


def _lost(ref: FragmentRef) -> Remainder:
    reason = f"damaged before, and gone with its pack: ingest {ref.source} again"
    return Remainder(_short((ref.table, ref.sha256)), reason)


def _held(store: Store, forms: TextForms) -> Iterator[Remainder]:
    """Objects that hold a text after the removal."""
    yield from _held_for_good(store, forms)
    everything = fragments_in_history(store).values()
    for ref in sorted(refs[0] for refs in everything if refs[0].source == FORGOTTEN):
        if forms.in_bytes(store.read(ref)):
            yield Remainder(ref.key, "in the reason of an earlier removal, which cannot be changed")
    later = clock.now() + timedelta(days=1)  # so that no object is too young
    for info in collect(store, grace=timedelta(0), dry_run=True, now=lambda: later).removed:
        if info.key.startswith(_UNUSED) and forms.in_object(store.objects.get(info.key) or b""):
            yield Remainder(info.key, "no version refers to it: govtool store gc --grace 0 removes it")


def _held_for_good(store: Store, forms: TextForms) -> Iterator[Remainder]:
    """Commits, nodes and tags that hold a text, or are called so. Others name them, or a digest: they cannot change."""
    for folder in ("log", "manifest", "tags"):
        for info in store.objects.scan(folder):
            data, name = store.objects.get(info.key) or b"", info.key.replace("=", "/")
            if forms.in_bytes(data) or forms.in_text(name):
                places = [*_fields(data, forms), *(["its name"] if forms.in_text(name) else ())]
                rest = "which cannot be changed"
                if folder == "tags":
                    rest = f"which govtool tag delete {name.partition('/')[2]} removes"
                yield Remainder(info.key, f"in {', '.join(places) or 'its text'}, {rest}")


def _fields(data: bytes, forms: TextForms) -> Iterator[str]:
    """The fields of a slot, node or tag that hold a text."""
    try:
        body = json.loads(data)
    except ValueError:
        return
    for name, value in body.items() if isinstance(body, dict) else ():
        if forms.in_text(json.dumps(value, ensure_ascii=False)):
            yield str(name)


def _empty_caches(store: Store) -> tuple[str, ...]:
    """Remove what this machine keeps of the store: indexes, and files whose store is not known."""
    root = cache.cache_root()
    ids = {store.store_id, store.cache_id}
    folders = [found for name in sorted(ids) for found in (root / "commits").glob(f"{name}.*")]
    emptied = [folder for folder in (*folders, *(root / name for name in _CACHES)) if folder.is_dir()]
    for folder in emptied:
        shutil.rmtree(folder, ignore_errors=True)  # what another process writes there meanwhile may stay
    return tuple(dict.fromkeys(str(folder.relative_to(root).parts[0]) for folder in emptied))


def _unreached(store: Store) -> tuple[Remainder, ...]:
    """Places of copies that are outside of this store."""
    from govtool.app.serve.event_spool import spool_folder

    spool, steps = spool_folder(store, "openlineage").parent, cache.cache_root() / "ingest"
    places = [
        (
            "caches",
            f"{cache.cache_root()} on other machines: remove them, or wait until they are evicted;"
            " an index of an old commit may be derived there from text that is removed here",
        ),
        ("copies", "copies of this store: run govtool store copy to each, which removes it there"),
        ("backups", "backups of the store, and older versions of objects where the bucket keeps them"),
        ("inputs", "the files that were read: change them before the next ingest, or it comes back"),
        ("outputs", "answers, exports, reports and logs that were written before"),
    ]
    for folder, what in ((spool, "events that wait for a commit, or failed"), (steps, "work of ingests of logs")):
        if folder.is_dir() and any(folder.iterdir()):
            places.append(("spool", f"{what}: {folder}"))
    return tuple(Remainder(place, reason) for place, reason in places)
