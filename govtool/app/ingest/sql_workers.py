"""The scripts of a large ingest, extracted by several processes before the ingest itself.

Each process takes a part of the scripts, and others that define what they name, and extracts them as if there were no
more. It hands back memos (``govtool.capture.sql.memos.script_memos``) and the derivations of its part. The ingest then
goes on as after a change: a memo stands for its script only where all that its statements looked at has the same
answers among all scripts, and else the script is extracted again. So the graph is that of one process, to the byte,
however the scripts are shared out; a bad choice costs time only. A process holds the trees of its part alone, and the
ingest those of no script whose memo holds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from govtool.errors import EngineError
from govtool.functions.facts import MASKING
from govtool.linear import LinearRegex
from govtool.model.stored_rows import StoredRows

if TYPE_CHECKING:
    from govtool.app.ingest.logs.pool import Setup
    from govtool.capture.sql.extract import Options
    from govtool.capture.sql.files import Script
    from govtool.capture.sql.memos.script_memos import ScriptMemo
    from govtool.capture.sql.stages import StageProgress

WORTH: Final = 1_500_000
"""Characters below which one process is as fast: starting another one takes the time of half a million."""
OF_A_PART: Final = 1_000_000
"""Characters of a part at most; its trees take some 120 MB."""
_CONTEXT: Final = 0.2
"""Of the characters of a part, those of other scripts at most that are read with it."""
_READ_AT_MOST: Final = 0.75
"""The share of all characters that a process may have to read: there may be much that applies to all scripts."""
_MADE: Final = re.compile(
    r"create\b[^;(]{0,60}?\b(?:table|view|function|macro|procedure)\s+(?:if\s+not\s+exists\s+)?([\w.$`\"\[\]-]+)"
)
"""What a script makes, in lower case."""
_APPLIES_TO_ALL: Final = LinearRegex(
    r"(?:^|[^.\w])(?:trigger|synonym)\s+[\w`\"\[]|\bcreate\s+(?:or\s+replace\s+)?(?:rule|type)\b"
    r"|\btable\b[^;]{0,200}?\b(?:partition\s+of|inherit)\b|\battach\s+partition\b|\binherits\s*\("
    r"|\blocation\s*=?\s*['\"]|\boptions\s*\(\s*['\"`]?path\b"
    r"|\breturns\s+(?:@\w+\s+)?(?:table|setof)\b|\bfunction\b[\s\S]*\bbegin\b|[(,]\s*(?:in)?out\s",
)
"""Words of scripts that may hold for all others, as a routine with the name of a masking function may;
``govtool.capture.sql.memos.reuse`` compares them as a whole."""
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Extracted:
    """What the processes found."""

    guard: str
    """As of ``reuse.Memos``."""
    memos: Mapping[str, ScriptMemo]
    """By file."""
    rows: Mapping[str, StoredRows]
    """By file with a memo, the rows that hold its derivations."""


class Part(NamedTuple):
    """The scripts that one process extracts together."""

    scripts: tuple[Script, ...]
    own: frozenset[str]
    """The files of those whose memos are wanted."""


def extracted_by_workers(
    changed: Sequence[Script],
    settings: Options,
    how: str,
    workers: int | None,
    report: Callable[[StageProgress], None] | None,
) -> Extracted | None:
    """Extract scripts in several processes; None where one is as fast, or where they find nothing of use.

    Args:
        changed: Those of which there is no memo.
        settings: The extractor's options.
        how: As for ``extract_with_memos``.
        workers: Processes; None: one. On two cores several are slower: each reads what its part names as well, and the
            ingest opens the scripts again whose memos do not hold.
        report: As for ``extract_scripts``.
    """
    from govtool.app.ingest.logs.pool import Pool, Setup
    from govtool.capture.logs.read import LogOptions
    from govtool.capture.sql.stages import EXTRACTING, StageProgress

    if workers is None or workers < 2 or len(changed) < 2 or _size(changed) < WORTH:
        return None
    parts = shared_out(changed, settings, workers)
    if _size([script for part in parts for script in part.scripts]) > workers * _READ_AT_MOST * _size(changed):
        return None
    found: list[tuple[str, list[tuple[str, str]], bytes]] = []
    total = sum(_statements(part.scripts) for part in parts)

    def watch(done: int, failed: int, distinct: int) -> None:
        assert report is not None
        report(StageProgress(EXTRACTING, min(done, total), total, done, distinct, failed))

    with Pool(Setup(LogOptions(), settings, None), min(workers, len(parts))) as pool:
        pool.watch(None if report is None else watch)
        try:
            for answer in pool.answers(_extract, [(part, how) for part in parts]):
                found.append(answer)
        except EngineError:  # a process was killed: what the others found is of use all the same
            pass
    return _joined(found)


def shared_out(scripts: Sequence[Script], settings: Options, workers: int) -> list[Part]:
    """Share scripts out in their order, as neighbours name each other most, each part with what it names of others."""
    total = _size(scripts)
    count = max(workers, -(-total // OF_A_PART))
    bound = total / count
    shares: list[list[int]] = [[]]
    taken = 0
    for number, script in enumerate(scripts):
        if shares[-1] and taken >= bound * len(shares):
            shares.append([])
        shares[-1].append(number)
        taken += len(script.text)
    context = _Context(scripts, settings)
    return [context.part(share) for share in shares]


class _Context:
    """Finds the scripts that define what others name, by the look of their texts alone."""

    def __init__(self, scripts: Sequence[Script], settings: Options) -> None:
        self.scripts = scripts
        self.made: dict[str, list[int]] = {}
        """By the last part of a name, in lower case, the scripts that define it."""
        self.for_all: set[int] = set()
        for number, script in enumerate(scripts):
            text = script.text.lower()
            names = set(_defined(script, text, settings))
            for name in names:
                self.made.setdefault(name, []).append(number)
            if not names.isdisjoint(MASKING) or _APPLIES_TO_ALL.search(text):
                self.for_all.add(number)

    def part(self, share: Sequence[int]) -> Part:
        """Return a share with the scripts around it, in the order of all."""
        own = set(share)
        room = _CONTEXT * _size([self.scripts[number] for number in share])
        chosen = own | self.for_all
        waiting = list(own)
        while waiting and room > 0:
            for word in set(_WORD.findall(self.scripts[waiting.pop()].text.lower())):
                for number in self.made.get(word, ()):
                    if number not in chosen and room > 0:
                        room -= len(self.scripts[number].text)
                        chosen.add(number)
                        waiting.append(number)
        files = frozenset(self.scripts[number].file for number in own)
        return Part(tuple(self.scripts[number] for number in sorted(chosen)), files)


def _defined(script: Script, text: str, settings: Options) -> Iterator[str]:
    """The last parts of the names that a script makes, given its text in lower case too."""
    from govtool.capture.sql.options import relation_of

    names = [match[1] for match in _MADE.finditer(text)]
    relation = relation_of(script.file, settings) if script.file else None
    for name in [*names, *([relation] if relation else [])]:
        words = _WORD.findall(name.lower())
        if words:
            yield words[-1]


def _size(scripts: Sequence[Script]) -> int:
    return sum(len(script.text) for script in scripts)


def _statements(scripts: Sequence[Script]) -> int:
    """About how many statements scripts hold."""
    return sum(max(1, script.text.count(";")) for script in scripts)


def _joined(found: Sequence[tuple[str, list[tuple[str, str]], bytes]]) -> Extracted | None:
    """Combine the answers of workers with the most common guard; the others saw other scripts and are left out."""
    from govtool.capture.sql.memos.script_memos import ScriptMemo

    if not found:
        return None
    ((guard, _),) = Counter(answer[0] for answer in found).most_common(1)
    memos: dict[str, ScriptMemo] = {}
    rows: dict[str, StoredRows] = {}
    for seen, texts, data in found:
        if seen != guard or not texts:
            continue
        stored = StoredRows(_read(data))
        for file, text in texts:
            memos[file] = ScriptMemo.of_text(text)
            rows[file] = stored
    return Extracted(guard, memos, rows) if memos else None


def _read(data: bytes) -> Any:
    import pyarrow as pa

    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()


# -- in a worker -------------------------------------------------------------------------------------------------------


def _extract(setup: Setup, part: Part, how: str) -> tuple[str, list[tuple[str, str]], bytes]:
    """Extract a part: its guard, its memos by file, and their derivations as a table."""
    import pyarrow as pa

    from govtool.app.ingest.logs.steps import counting
    from govtool.capture.sql.collector import uncollected
    from govtool.capture.sql.memos.reuse import NotReusable, extract_with_memos
    from govtool.model.columnar import to_table

    with uncollected():
        try:
            report = counting(_statements(part.scripts), setup.advance)
            found = extract_with_memos(part.scripts, setup.settings, how, None, report)
        except NotReusable:
            return "", [], b""
        memos = found.memos.scripts
        wanted = [each for each in found.parts if each.file in part.own and each.file in memos]
        table = to_table([derivation for each in wanted for derivation in each.derivations])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        texts = [(each.file, memos[each.file].to_text()) for each in wanted]
        return found.memos.guard, texts, sink.getvalue().to_pybytes()
