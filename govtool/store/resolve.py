"""From what a user calls a commit to the commit."""

from __future__ import annotations

import difflib
import re
from datetime import UTC, date, datetime, time, timedelta

from govtool import clock
from govtool.errors import AmbiguousNameError, UnknownNameError
from govtool.store import log, refs
from govtool.store.backends.objects import ReadableObjects
from govtool.store.commit import Commit, slot_key

_PREFIX = re.compile(r"[0-9a-f]{4,64}")
_BACK = re.compile(r"(.+)~(\d{0,9})")


def resolve(objects: ReadableObjects, ref: str, branch: str) -> Commit:
    """The commit that ``ref`` names; see `govtool.store.store.Store.resolve`."""
    if found := _BACK.fullmatch(ref):
        commit = resolve(objects, found[1], branch)
        for _ in range(int(found[2] or 1)):
            parent = log.read_parent(objects, commit)
            if parent is None:
                raise _unknown(ref, f"commit {commit.short} is the first one")
            commit = parent
        return commit
    head = log.read_position(objects, branch).head
    if head is None or head.closed:
        raise UnknownNameError(
            f"branch {branch!r} has no commits",
            code="usage.unknown-ref",
            hint="ingest something first: govtool ingest sql FOLDER",
        )
    if ref in ("HEAD", branch):
        return head
    named = _by_name(objects, ref)
    if named is not None:
        return named
    placed = _by_number(objects, ref, head) or _by_time(objects, ref, head)
    if placed is None:
        return _by_prefix(objects, ref, head)
    _check(objects, head, placed)
    return placed


def _check(objects: ReadableObjects, head: Commit, commit: Commit) -> None:
    """Check a commit that was found by its place: on a local disk all from the head to it, else the one after it."""
    if commit.id == head.id:
        return
    if not getattr(objects, "is_remote", False):
        log.check_chain(objects, head, commit.seq)
    elif commit.branch == head.branch:
        log.check_link(objects, commit)


def _by_name(objects: ReadableObjects, ref: str) -> Commit | None:
    tag = refs.read_tag(objects, ref)
    if tag is not None:
        return tag
    if not refs.is_ref_name(ref):
        return None
    other = log.read_position(objects, ref).head
    return None if other is None or other.closed else other


def _by_number(objects: ReadableObjects, ref: str, head: Commit) -> Commit | None:
    if not re.fullmatch(r"[0-9]{1,12}", ref) or not 1 <= int(ref) <= head.seq:
        return None
    seq, commit = int(ref), head
    while seq < commit.start:
        first = log.read_slot(objects, commit.branch, commit.start)
        if first is not None and first.repairs(seq):
            return _existing(objects, commit.branch, seq)
        fork = None if first is None else log.read_parent(objects, first)
        if fork is None:
            return None
        commit = fork
    return _existing(objects, commit.branch, seq) if seq <= commit.seq else None


def _existing(objects: ReadableObjects, branch: str, seq: int) -> Commit:
    """The commit of a slot that a later commit was made from.

    Raises:
        IntegrityError: ``store.corrupt-chain`` if it is missing.
    """
    commit = log.read_slot(objects, branch, seq)
    if commit is None:
        raise log.chain_error(slot_key(branch, seq), "is missing, but later commits were made from it")
    return commit


def _by_time(objects: ReadableObjects, ref: str, head: Commit) -> Commit | None:
    moment = parse_moment(ref)
    if moment is None:
        return None
    # Times never decrease along a branch. Look back in growing steps, then halve: a few reads at any length of the log.
    wanted = clock.iso(moment)
    if head.time <= wanted:
        return head
    newer, step = head, 1
    while True:
        step = max(1, min(step, newer.seq - newer.start))
        if step == 1:
            older = log.read_parent(objects, newer)
        else:
            older = _existing(objects, newer.branch, newer.seq - step)
        if older is None:
            raise _unknown(ref, f"the first commit was made at {newer.time}")
        if older.time > wanted:
            newer, step = older, step * 2
        elif step == 1:
            return older
        else:
            step //= 2


def parse_moment(text: str) -> datetime | None:
    """An ISO date (the end of that day) or datetime, in UTC unless it says otherwise; ``None`` if it is neither."""
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            day = datetime.combine(date.fromisoformat(text), time(), UTC)
            return day + timedelta(days=1) - timedelta(milliseconds=1)
        if not re.match(r"\d{4}-\d{2}-\d{2}[T ]", text):
            return None
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _by_prefix(objects: ReadableObjects, ref: str, head: Commit) -> Commit:
    prefix = ref.lower()
    newest = f"the newest is {head.seq} ({head.short})" if ref.isdecimal() else ""
    if not _PREFIX.fullmatch(prefix):
        branches = refs.branch_names(objects)
        if ref in branches:
            raise _unknown(ref, "the branch was deleted")
        known = ["HEAD", *branches, *refs.tag_names(objects)]
        raise _unknown(ref, newest, tuple(difflib.get_close_matches(ref, known)))
    matches = [commit for commit in log.walk(objects, head) if commit.id.startswith(prefix)]
    if not matches:
        raise _unknown(ref, newest)
    if len(matches) > 1:
        raise AmbiguousNameError(
            f"{len(matches)} commits begin with {ref!r}",
            code="usage.ambiguous-ref",
            nearest=tuple(commit.id[: len(prefix) + 4] for commit in matches[:10]),
            hint="give more digits; govtool log lists the commits",
        )
    return matches[0]


def _unknown(ref: str, detail: str, nearest: tuple[str, ...] = ()) -> UnknownNameError:
    return UnknownNameError(
        f"there is no commit {ref!r}" + (f": {detail}" if detail else ""),
        code="usage.unknown-ref",
        nearest=nearest,
        hint="govtool log lists the commits; a ref is HEAD, a branch, a tag, a number, an id or a date",
    )
