"""Statements of scripts that differ between two versions, and change nothing else of the graph.

Another literal, operator or bound (``amount > 10``, then ``amount > 20``) leaves datasets, columns and edges as they
were, but not the results. Versions know statements by their fingerprint, without literals that cannot change the
lineage, and by a short digest of these. Of query logs, which repeat a statement with ever other literals, and of runs
neither is compared; nor are literals of versions by an earlier govtool, which kept no digest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from govtool.graph.digests import SCRIPT
from govtool.graph.index import Index
from govtool.query.changes.positions import WHOLE_TEXT
from govtool.query.evidence import Evidence, evidence
from govtool.query.versions.diff import CHANGED, GraphChange, generations

_AROUND = 24
"""Characters that are shown before and after what differs."""
LITERALS = "other literals"
"""What a statement is after the change, where its text without literals is the same."""
BEYOND = (f"the first {WHOLE_TEXT:,} characters are the same", "the text after them differs")
"""Before and after, where the texts that the graph keeps do not reach the difference."""


class _Made(NamedTuple):
    """A statement of a script that makes a dataset."""

    fingerprint: str
    literals: str | None
    text: str
    evidence: Evidence


def statement_changes(
    old: Index, new: Index, names: Collection[str], shown: Iterable[GraphChange]
) -> Iterator[GraphChange]:
    """List the datasets that are made by other statements.

    Args:
        old: The graph before.
        new: The graph after.
        names: Datasets to look at; those in one of the graphs alone are left out.
        shown: Other changes: the statements behind these are not listed again.
    """
    causes = {(item.file, item.fingerprint) for change in shown for item in change.evidence}
    for name in sorted(names):
        before, after = _made(old, name), _made(new, name)
        gone, come = _unexplained(_without(before, after), _without(after, before), causes)
        if not before or not after or not (gone or come):
            continue
        texts = _texts(gone, come)
        yield GraphChange(
            what="statement",
            change=CHANGED,
            name=name,
            source=None,
            kind=(come or gone)[0].evidence.kind,
            before=texts[0],
            after=texts[1],
            evidence=tuple(one.evidence for one in come or gone),
        )


def _made(index: Index, name: str) -> list[_Made]:
    """The statements of scripts that compute a dataset, each once, by place."""
    made = [
        _Made(proof.fingerprint, index.field(derivation, "literals"), index.field(derivation, "text") or "", proof)
        for dataset in generations(index, [name])
        for derivation in index.makers(dataset)
        if _is_compared(index, derivation) and (proof := evidence(index, derivation))
    ]
    made.sort(key=lambda one: (one.evidence.file, one.evidence.line, one.fingerprint, one.literals or ""))
    return list({(one.fingerprint, one.literals): one for one in reversed(made)}.values())[::-1]


def _is_compared(index: Index, derivation: int) -> bool:
    """Return whether a derivation is of a script and computes something; ``govtool.graph.digests`` takes the same."""
    if index.field(derivation, "how") != SCRIPT or index.field(derivation, "first_seen"):
        return False
    return index.mode(derivation) != "declare"


def _without(some: list[_Made], others: list[_Made]) -> list[_Made]:
    """The statements that others do not have; unknown literals equal any."""
    known: dict[str, set[str | None]] = {}
    for other in others:
        known.setdefault(other.fingerprint, set()).add(other.literals)
    return [one for one in some if known.get(one.fingerprint, set()).isdisjoint(_alike(one, known))]


def _alike(one: _Made, known: Mapping[str, set[str | None]]) -> set[str | None]:
    """The literals that count as those of a statement."""
    return {None, one.literals} if one.literals is not None else known.get(one.fingerprint, set())


def _unexplained(
    gone: list[_Made], come: list[_Made], causes: Collection[tuple[str, str]]
) -> tuple[list[_Made], list[_Made]]:
    """Leave out statements that are shown as causes, each with the one that took its place."""
    left = list(come)
    stay = []
    for one in gone:
        successor = min(
            (other for other in left if _kind(other) == _kind(one)),
            key=lambda other: abs(other.evidence.line - one.evidence.line),
            default=None,
        )
        known = [each for each in (one, successor) if each and (each.evidence.file, each.fingerprint) in causes]
        if not known:
            stay.append(one)
        elif successor is not None:
            left.remove(successor)
    return stay, [one for one in left if (one.evidence.file, one.fingerprint) not in causes]


def _kind(made: _Made) -> tuple[str, str]:
    return made.evidence.file, made.evidence.kind


def _texts(gone: list[_Made], come: list[_Made]) -> tuple[str, str]:
    """What to show of statements that differ, before and after."""
    before, after = _text(gone), _text(come)
    if _differ_in_literals(gone, come):
        return _other_literals(after)
    return BEYOND if before == after else _excerpts(before, after)


def _differ_in_literals(gone: list[_Made], come: list[_Made]) -> bool:
    """Return whether statements are alike but for literals, which a fingerprint may keep, and texts do not have."""
    if {one.fingerprint for one in gone} == {one.fingerprint for one in come}:
        return True
    return _text(gone) == _text(come) and all(len(one.text) < WHOLE_TEXT for one in (*gone, *come))


def _text(statements: list[_Made]) -> str:
    return "; ".join(" ".join(one.text.split()) for one in statements)


def _other_literals(text: str) -> tuple[str, str]:
    place = max(text.find("?"), 0)
    return _cut(text, place, place + 1), LITERALS


def _excerpts(before: str, after: str) -> tuple[str, str]:
    """What of two texts differs, with a little of what is around it."""
    limit = min(len(before), len(after))
    start = next((i for i in range(limit) if before[i] != after[i]), limit)
    end = next((i for i in range(limit - start) if before[-1 - i] != after[-1 - i]), limit - start)
    return _cut(before, start, len(before) - end), _cut(after, start, len(after) - end)


def _cut(text: str, start: int, end: int) -> str:
    low, high = max(0, start - _AROUND), min(len(text), max(end, start) + _AROUND)
    return f"{'…' if low else ''}{text[low:high]}{'…' if high < len(text) else ''}"
