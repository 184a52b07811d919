"""Differences between two runs: inputs, code, arguments, settings, environment, plan, outputs, and the first cause.

A difference of content is followed upstream, to the runs that wrote what each of the two runs read, as long as these
were given different data themselves; where they were given the same and still wrote something else, what differs
between *them* is the cause. Where no run is known to have written the data, that is the cause: it changed without
provenance. What only one of two runs records is ``unknown`` and never equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from govtool.model.run import Run
from govtool.query.runs.aspects import (
    ASPECTS,
    DIFFERENT,
    EQUAL,
    EQUAL_ROWS,
    LITERAL,
    UNKNOWN,
    Cause,
    NotComparable,
    OutputVerdict,
    RunChange,
    compare_runs,
    not_comparable,
    output_verdict,
)
from govtool.query.runs.history import History, RunInputVersion, WrittenVersion
from govtool.query.runs.relation_names import RelationHistory

_CAUSES = ("code", "arguments", "config", "environment", "plan", "data")
_CONTENT = ("content", "rows", "schema")
_CHANCE = re.compile(
    r"\b(rand|randn|random|uuid|gen_random_uuid|generate_uuid|shuffle|current_timestamp|current_date|now|getdate|sysdate"
    r"|localtimestamp|monotonically_increasing_id|spark_partition_id|input_file_name|any_value|first|first_value|last"
    r"|last_value|collect_list|collect_set|array_agg|listagg|string_agg|row_number|max_by|min_by|sample|tablesample)\s*\(",
    re.IGNORECASE,
)
_BLACK_BOX = re.compile(
    r"(?<!\w)(?=\w*?(?:udf|udaf|rdd|pandas|arrow|typed|scala_aggregator|map_elements|stream|variable))\w++",
    re.IGNORECASE,
)
"""Operators and expressions of a signature whose code is not in it."""


@dataclass(frozen=True, slots=True)
class RunDifference:
    """Two runs compared."""

    first: Run
    second: Run
    changes: tuple[RunChange, ...]
    """In the order of ``ASPECTS``, then by name."""
    not_comparable: tuple[NotComparable, ...]
    outputs: tuple[OutputVerdict, ...] = ()
    """The outputs that both runs have."""

    @property
    def reproduced(self) -> bool:
        """True if the second run left the same content as the first, as far as content is recorded."""
        return not any(change.aspect in ("output", "status") for change in self.changes)

    @property
    def verdict(self) -> str:
        """The outputs of the runs as a whole: ``equal``, ``equal rows, files differ``, ``different``, ``unknown``."""
        found = {output.verdict for output in self.outputs}
        if any(c.aspect in ("output", "status") and c.what != "files" for c in self.changes):
            return DIFFERENT
        return next((each for each in (DIFFERENT, UNKNOWN, EQUAL_ROWS) if each in found), EQUAL if found else UNKNOWN)

    def state(self, aspect: str) -> str:
        """``different``, ``equal``, ``in part`` or ``not compared``: what the comparison of an aspect came to."""
        if any(change.aspect == aspect for change in self.changes):
            return DIFFERENT
        lacking = [each for each in self.not_comparable if each.aspect == aspect]
        if not lacking:
            old, new = self.first.reproduction, self.second.reproduction
            facts = aspect in ("arguments", "data")
            return "not compared" if facts and (old is None or new is None) else EQUAL
        if aspect in ("input", "output"):
            known = {one.dataset for one in (self.first.inputs if aspect == "input" else self.first.outputs)}
            return "in part" if len(known) > len(lacking) else "not compared"
        return "in part" if aspect == "plan" and self.first.plan and self.second.plan else "not compared"


def diff_runs(history: History, first: Run, second: Run) -> RunDifference:
    """Compare two runs, usually of one job, and find the first cause of each difference.

    Datasets go by the names of relations where runs have folders of their own: see ``RelationHistory``.
    """
    named = RelationHistory(history)
    old, new = named.run(first), named.run(second)
    plain = compare_runs(named.history, old, new)
    plain.sort(key=lambda change: ASPECTS.index(change.aspect))
    after = {output.dataset: output for output in new.outputs}
    return RunDifference(
        first,
        second,
        tuple(_with_cause(named.history, change, plain, old, new) for change in plain),
        not_comparable(old, new),
        tuple(output_verdict(each, after[each.dataset]) for each in old.outputs if each.dataset in after),
    )


def difference_cause(history: History, found: RunDifference) -> Cause:
    """Return the reasons why the outputs of two compared runs differ."""
    named = RelationHistory(history)
    return first_cause(named.history, found.changes, named.run(found.first), named.run(found.second))


# ---- why --------------------------------------------------------------------------------------------


def _with_cause(
    history: History, change: RunChange, changes: Sequence[RunChange], first: Run, second: Run
) -> RunChange:
    if change.aspect == "input" and change.what in _CONTENT:
        return replace(change, cause=_upstream(history, change.name, first, second))
    if change.aspect in ("output", "status"):
        return replace(change, cause=first_cause(history, changes, first, second))
    return change


def first_cause(history: History, changes: Sequence[RunChange], first: Run, second: Run) -> Cause:
    """Return the reasons why outputs differ: first the inputs, then the processing."""
    for change in changes:
        if change.aspect == "input" and change.what in _CONTENT:
            return _upstream(history, change.name, first, second)
    return _own(changes, first, second, ())


def _own(changes: Sequence[RunChange], first: Run, second: Run, way: tuple[str, ...]) -> Cause:
    """Return the differences between two runs that read the same."""
    runs = (first.id, second.id)
    read = [change for change in changes if change.what == "offsets"]
    if read:  # other parts of a stream are other data, whatever else differs
        return Cause("input", "; ".join(_words(change) for change in read), way, runs)
    ruled_out = ("code", "arguments") if _is_same_work(changes, first, second) else ()
    own = [change for change in changes if change.aspect in _CAUSES and change.aspect not in ruled_out]
    chance = _chance(first, second)
    if own:
        more = f"; each run may also differ by {', '.join(chance)}" if chance else ""
        return Cause(own[0].aspect, _listed(own) + more, way, runs)
    unsettled = _unsettled(first, second, chance, way)
    if unsettled is not None:  # which says more than when another input was written
        return unsettled
    other = next((change for change in changes if change.aspect == "input"), None)
    if other is not None:  # what was read, or only when it was written, follows from nothing else
        what = "written again, with the same names and sizes" if other.what == "times" else other.what
        return Cause("input", f"{other.name} {what}", (*way, other.name), runs)
    if chance:
        return Cause("chance", ", ".join(chance), way, runs)
    return Cause("unknown", _nothing(first, second), way, runs)


def _unsettled(first: Run, second: Run, chance: Sequence[str], way: tuple[str, ...]) -> Cause | None:
    """That inputs may have been other data; None where all could be compared."""
    inputs = [each for each in not_comparable(first, second) if each.aspect == "input" and each.why]
    if not inputs:
        return None
    texts = [f"input {each.name} may have been other data: {each.why}" for each in inputs]
    more = f"; also: {', '.join(chance)}" if chance else ""
    return Cause("unknown", "; ".join(texts) + more, (*way, inputs[0].name), (first.id, second.id))


def _listed(own: Sequence[RunChange]) -> str:
    """The changes of the first aspect in words, and what follows from them in the plan."""
    aspect = own[0].aspect
    texts = [_words(change) for change in own if change.aspect == aspect]
    more = f" (+{len(texts) - 3})" if len(texts) > 3 else ""
    others = [other for other in dict.fromkeys(change.aspect for change in own) if other not in (aspect, "plan")]
    plan = [_words(change) for change in own if change.aspect == "plan" != aspect]
    also = f"; also: {', '.join(others)}" if others else ""
    return "; ".join(texts[:3]) + more + (f"; {plan[0]}" if plan else "") + also


def _words(change: RunChange) -> str:
    before, after = change.before or "absent", change.after or "absent"
    if change.what == "literal":
        return f"a literal of the plan: {LITERAL.sub('?', before)}"
    if change.what == "text":
        return f"the plan of {change.name}: {before} → {after}"
    if change.what == "function":
        return f"the code of {change.name} differs"
    if change.what == "captured":
        return f"{change.name} {'differs' if change.before and change.after else 'is only in one run'}"
    if change.aspect == "arguments":
        return f"{change.name} {'differs' if change.what == 'value' else change.what}"
    return f"{change.name} {before} → {after}"


def _is_same_work(changes: Iterable[RunChange], first: Run, second: Run) -> bool:
    """Return whether both plans are known whole and equal: then other code and arguments made no difference."""
    old, new = first.reproduction, second.reproduction
    if old is None or new is None or not old.signature or old.signature != new.signature:
        return False
    if not old.key or old.key != new.key or "…" in old.signature or _BLACK_BOX.search(old.signature):
        return False
    if any(read.listing is None for run in (first, second) for read in run.inputs):
        return False  # of what is no list of files, the query that reads it is not in the plan
    return not any(change.aspect in ("plan", "data") for change in changes)


def _chance(first: Run, second: Run) -> list[str]:
    """Functions that may answer otherwise each time: those that were recorded, else those in the plans' text."""
    recorded = [
        name.partition("(")[0] + "()" if name.endswith(")") else name
        for run in (first, second)
        for name in (run.reproduction.functions if run.reproduction is not None else ())
    ]
    found = (match[1].lower() + "()" for run in (first, second) for match in _CHANCE.finditer(run.plan))
    return list(dict.fromkeys(recorded)) or sorted(set(found))


def _nothing(first: Run, second: Run) -> str:
    """That no cause was found, and what could not be looked at."""
    lacking = [each for each in not_comparable(first, second) if each.aspect != "output"]
    names = list(dict.fromkeys(each.name if "function" in each.name else each.aspect for each in lacking))
    names += [name for name in ("arguments", "literals") if first.reproduction is None or second.reproduction is None]
    names = list(dict.fromkeys(names))
    # A function of the job may read what nobody records: its environment, values that the driver broadcast, files.
    known = [run.reproduction.signature for run in (first, second) if run.reproduction is not None]
    code = sorted({found.lower() for signature in known for found in _BLACK_BOX.findall(signature)})
    if any(read.listing is not None for read in first.inputs) and not names:
        names = ["the content of files, which are known by size and time"]
    names += [f"what code outside of the plan reads ({', '.join(code[:3])})"] if code else []
    found = "nothing that was compared differs"
    return f"{found}; not compared: {', '.join(names)}" if names else found


def _upstream(history: History, dataset: str, first: Run, second: Run) -> Cause:
    """Follow a dataset of which two runs read different content to the beginning of the difference."""
    way: tuple[str, ...] = ()
    seen: set[tuple[int, int]] = set()
    while True:
        way = (*way, dataset)
        old, new = _version(history, first, dataset), _version(history, second, dataset)
        if old is None or new is None:
            which = "either run" if old is None and new is None else first.id if old is None else second.id
            return Cause("no-provenance", f"no run is known to have written what {which} read of {dataset}", way)
        if old == new:
            return Cause("no-provenance", f"{dataset} changed after {history.writing(old).run.id} wrote it", way)
        grown = _grown(history, old, new)
        if grown is not None:
            return Cause(grown[0], grown[1], way, grown[2])
        makers = history.writing(old).run, history.writing(new).run
        pair = (id(makers[0]), id(makers[1]))
        changes = compare_runs(history, *makers)
        content = next((c for c in changes if c.aspect == "input" and c.what in _CONTENT), None)
        if pair in seen or content is None:
            return _own(changes, *makers, way)
        seen.add(pair)
        dataset, (first, second) = content.name, makers


def _version(history: History, run: Run, dataset: str) -> WrittenVersion | None:
    readings: Iterator[RunInputVersion] = history.readings(run)
    return next((reading.version for reading in readings if reading.dataset == dataset), None)


def _grown(
    history: History, old: WrittenVersion, new: WrittenVersion
) -> tuple[str, str, tuple[str | None, str | None]] | None:
    """Return whether one version is the other with more added to it, and by whom."""
    for kind, small, large in (("added", old, new), ("removed", new, old)):
        parts = list(history.parts(large))
        if small in (part.version for part in parts):
            more = [part.run.id for part in parts if part.version.number > small.number]
            text = f"{more[-1]}{f' and {len(more) - 1} more' if len(more) > 1 else ''} added to {large.dataset}"
            return kind, text, (None, more[-1]) if kind == "added" else (more[-1], None)
    return None
