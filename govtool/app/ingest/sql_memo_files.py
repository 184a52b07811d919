"""The local cache of what SQL sources yielded last time: memos of their scripts, and where their derivations lie.

A file a source and branch of a store, in the folder ``memos`` of the cache, a line a script. It begins with the digest
of the rest; a file that is damaged, too large or of another shape is none, and costs an ingest in full. It is never the
truth: the memos are looked at only for scripts whose text and options are the same
(``govtool.capture.sql.memos.reuse``), the derivations are read from the store, and only if the head of the branch
holds them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.capture.sql.collector import uncollected
from govtool.model.fact import Fact

if TYPE_CHECKING:
    from govtool.capture.sql.memos.reuse import Memos
    from govtool.store import Store

FOLDER = "memos"
BROKEN = (ValueError, TypeError, KeyError, IndexError, AttributeError)
"""Exceptions of values that are of another shape."""
MAX_BYTES = 512 * 1024 * 1024
"""Larger files are neither written nor read."""
_SHARE = 4
"""The part of the cache's bound that memos may take: one in so many bytes."""


@dataclass(frozen=True, slots=True)
class EarlierIngest:
    """The result of the last ingest of a source, as far as the next can use it."""

    memos: Memos
    places: Mapping[str, str]
    """By file the digest of the fragment that its derivations are in, in the order of files."""
    facts: Mapping[str, Sequence[Fact]]
    """By file the facts that it states; of files with a memo, where there are any."""
    yields: Mapping[str, str]
    """By file without a memo a digest of its derivations."""
    how: str = ""
    """A digest of all but the scripts that decided the result, the encoder included."""


def memo_file(store: Store, source: str, branch: str) -> Path:
    """The cache's file for a source of a branch."""
    from govtool.store import cache

    name = hashlib.sha256(json.dumps([store.cache_id, branch, source]).encode()).hexdigest()
    return cache.cache_root() / FOLDER / name[:40]


def load_earlier(file: Path) -> EarlierIngest | None:
    """Load what ``save_earlier`` wrote; None if there is nothing of use."""
    try:
        with uncollected():
            if file.stat().st_size > MAX_BYTES:
                return None
            digest, _, body = file.read_bytes().partition(b"\n")
            if hashlib.sha256(body).hexdigest().encode() != digest:
                return None
            found = _earlier(body.decode("ascii").split("\n"))
        with contextlib.suppress(OSError):
            os.utime(file)
        return found
    except (OSError, *BROKEN, RecursionError):
        return None


def _earlier(lines: list[str]) -> EarlierIngest:
    from govtool.capture.sql.memos.reuse import Memos
    from govtool.capture.sql.memos.script_memos import ScriptMemo

    head, *scripts = lines
    guard, files, places, facts, yields, how = json.loads(head)
    memos = Memos(str(guard), dict(zip(map(str, files), map(ScriptMemo.of_text, scripts), strict=True)))
    stated = {file: [Fact(*fields) for fields in listed] for file, listed in facts.items()}
    placed = {str(file): str(place) for file, place in places.items()}
    return EarlierIngest(memos, placed, stated, dict(yields), str(how))


def save_earlier(file: Path, earlier: EarlierIngest) -> None:
    """Keep the result of an ingest for the next. A cache that cannot be written keeps nothing, silently."""
    with uncollected():
        scripts = earlier.memos.scripts
        facts = {name: [_fact_value(fact) for fact in found] for name, found in earlier.facts.items()}
        head = [earlier.memos.guard, list(scripts), dict(earlier.places), facts, dict(earlier.yields), earlier.how]
        lines = [json.dumps(head, separators=(",", ":")), *(memo.to_text() for memo in scripts.values())]
    digest, size = hashlib.sha256(), 0
    for data in _encoded(lines):
        digest.update(data)
        size += len(data)
    if size > MAX_BYTES:
        return
    building = file.parent / f".{uuid.uuid4().hex}"
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        building.touch(mode=0o600, exist_ok=False)
        with building.open("wb") as out:
            out.write(digest.hexdigest().encode() + b"\n")
            out.writelines(_encoded(lines))
        building.replace(file)
        _evict(file)
    except OSError:
        with contextlib.suppress(OSError):
            building.unlink(missing_ok=True)


def _encoded(lines: Sequence[str]) -> Iterator[bytes]:
    """Lines one by one: all of them at once take as much memory again, some 20 MB for 4,000 files."""
    for number, line in enumerate(lines):
        yield (f"\n{line}" if number else line).encode("ascii")


def _fact_value(fact: Fact) -> list[str | None]:
    return list(fact)


def _evict(keep: Path) -> None:
    """Remove the files that were used longest ago until memos take no more than their share of the cache."""
    from govtool.store import cache

    room = cache.size_limit() // _SHARE
    found = [(entry.stat(), Path(entry.path)) for entry in os.scandir(keep.parent)]
    total = sum(stat.st_size for stat, _ in found)
    for stat, path in sorted(found, key=lambda item: item[0].st_mtime):
        if total <= room:
            break
        if path != keep:
            path.unlink(missing_ok=True)
            total -= stat.st_size
