"""Why two runs of a job differ: inputs, code, plan, settings, environment, outputs, and the first upstream cause.

A difference of content is followed upstream, to the runs that wrote what each of the two runs read, as long as these
were given different data themselves; where they were given the same and still wrote something else, what differs
between *them* is the cause. Where no run is known to have written the data, that is the cause: it changed without
provenance. What only one of two runs tells is ``unknown`` and never equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from govtool.model.run import Run, RunInput, RunOutput
from govtool.model.version import ContentIdentity
from govtool.query.runs import History, RunInputVersion, WrittenVersion

ASPECTS = ("input", "code", "plan", "config", "environment", "output", "status")
"""In the order in which one can cause the next."""
_CAUSES = ("code", "plan", "config", "environment")
_CHANCE = re.compile(
    r"\b(rand|randn|random|uuid|gen_random_uuid|generate_uuid|shuffle|current_timestamp|current_date|now|getdate|sysdate"
    r"|localtimestamp|monotonically_increasing_id|spark_partition_id|input_file_name|any_value|first|first_value|sample"
    r"|tablesample)\s*\(",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Cause:
    """Where a difference begins."""

    kind: str
    """An aspect; ``added`` and ``removed`` for a run that only one side read from, ``no-provenance`` for data that
    changed without a run, ``chance`` for functions that may answer otherwise each time, ``unknown``."""
    text: str
    """What it is, in a few words."""
    way: tuple[str, ...] = ()
    """Datasets from the one that differs upstream to where it begins."""
    runs: tuple[str | None, str | None] = (None, None)
    """The runs that are the first to differ."""


@dataclass(frozen=True, slots=True)
class RunChange:
    """One difference of two runs."""

    aspect: str
    """One of ``ASPECTS``."""
    name: str
    """The dataset, setting or software."""
    what: str
    """``added``, ``removed``, ``content``, ``rows``, ``schema``, ``mode``, ``value``, ``text``."""
    before: str | None
    after: str | None
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class NotComparable:
    """What cannot be compared, since a run does not tell."""

    aspect: str
    name: str
    which: str
    """``first``, ``second`` or ``both``: who does not tell."""


@dataclass(frozen=True, slots=True)
class RunDifference:
    """Two runs compared."""

    first: Run
    second: Run
    changes: tuple[RunChange, ...]
    """In the order of ``ASPECTS``, then by name."""
    not_comparable: tuple[NotComparable, ...]

    @property
    def reproduced(self) -> bool:
        """Whether the second run left the same content as the first, as far as content is told."""
        return not any(change.aspect in ("output", "status") for change in self.changes)


def diff_runs(history: History, first: Run, second: Run) -> RunDifference:
    """Compare two runs, usually of one job, and find the first cause of each difference."""
    plain = _compare(first, second)
    return RunDifference(
        first,
        second,
        tuple(_with_cause(history, change, plain, first, second) for change in plain),
        _not_comparable(first, second),
    )


# ---- what differs -----------------------------------------------------------------------------------


def _compare(first: Run, second: Run) -> list[RunChange]:
    found: list[RunChange] = []
    found += _datasets("input", first.inputs, second.inputs)
    code, other = _software(first), _software(second)
    found += _values("code", code[0], other[0])
    if first.plan and second.plan and first.plan != second.plan:
        before, after = _first_difference(first.plan, second.plan)
        found.append(RunChange("plan", first.job, "text", before, after))
    found += _values("config", first.config, second.config)
    found += _values("environment", code[1], other[1])
    found += _datasets("output", first.outputs, second.outputs)
    if first.status != second.status:
        found.append(RunChange("status", first.job, "value", first.status, second.status))
    return found


def _software(run: Run) -> tuple[dict[str, str], dict[str, str]]:
    """The job's own code, and what it ran on; several versions of one name are told together."""
    code: dict[str, list[str]] = {}
    rest: dict[str, list[str]] = {}
    for item in run.software:
        own = item.name.startswith(("script:", "git"))
        (code if own else rest).setdefault(item.name, []).append(item.version)
    if run.host:
        rest["host"] = [run.host]
    return {k: ", ".join(v) for k, v in code.items()}, {k: ", ".join(v) for k, v in rest.items()}


def _values(aspect: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[RunChange]:
    if not before or not after:
        return  # one of them does not tell at all: see _untold
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old != new:
            what = "added" if old is None else "removed" if new is None else "value"
            yield RunChange(aspect, name, what, old, new)


def _datasets(
    aspect: str, before: Sequence[RunInput] | Sequence[RunOutput], after: Sequence[RunInput] | Sequence[RunOutput]
) -> Iterator[RunChange]:
    olds, news = {one.dataset: one for one in before}, {one.dataset: one for one in after}
    for name in sorted(olds.keys() | news.keys()):
        old, new = olds.get(name), news.get(name)
        if old is None or new is None:
            what = "added" if old is None else "removed"
            before_, after_ = (None if one is None else _content(one.identity) for one in (old, new))
            yield RunChange(aspect, name, what, before_, after_)
            continue
        if old.identity is not None and new.identity is not None and old.identity != new.identity:
            yield RunChange(aspect, name, "content", _content(old.identity), _content(new.identity))
        if old.rows is not None and new.rows is not None and old.rows != new.rows:
            yield RunChange(aspect, name, "rows", f"{old.rows:,}", f"{new.rows:,}")
        if old.fields and new.fields and old.fields != new.fields:
            yield RunChange(aspect, name, "schema", *_fields(old.fields, new.fields))
        if isinstance(old, RunOutput) and isinstance(new, RunOutput) and old.mode != new.mode and old.mode and new.mode:
            yield RunChange(aspect, name, "mode", old.mode, new.mode)


def _content(identity: ContentIdentity | None) -> str:
    if identity is None:
        return "?"
    version = "" if identity.version is None else f" version {identity.version}"
    return f"{identity.kind}{version} {identity.short}"


def _fields(before: Iterable[tuple[str, str]], after: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The columns that only one side has, or has otherwise; all of them if only their order differs."""
    olds, news = [f"{n} {t}".strip() for n, t in before], [f"{n} {t}".strip() for n, t in after]
    only = [one for one in olds if one not in news], [one for one in news if one not in olds]
    return (", ".join(only[0]), ", ".join(only[1])) if only[0] or only[1] else (", ".join(olds), ", ".join(news))


def _first_difference(before: str, after: str) -> tuple[str | None, str | None]:
    for old, new in zip_longest(before.splitlines(), after.splitlines()):
        if old != new:
            return old, new
    return before, after


def _not_comparable(first: Run, second: Run) -> tuple[NotComparable, ...]:
    found: list[NotComparable] = []

    def look(aspect: str, name: str, old: object, new: object) -> None:
        missing = (old is None or old == "" or old == {}, new is None or new == "" or new == {})
        if any(missing):
            found.append(NotComparable(aspect, name, "both" if all(missing) else "first" if missing[0] else "second"))

    for aspect, sides in (("input", (first.inputs, second.inputs)), ("output", (first.outputs, second.outputs))):
        olds, news = ({one.dataset: one for one in side} for side in sides)
        for name in sorted(olds.keys() & news.keys()):
            look(aspect, name, olds[name].identity, news[name].identity)
    code, other = _software(first), _software(second)
    look("code", first.job, code[0], other[0])
    look("plan", first.job, first.plan, second.plan)
    look("config", first.job, dict(first.config), dict(second.config))
    look("environment", first.job, code[1], other[1])
    return tuple(found)


# ---- why --------------------------------------------------------------------------------------------


def _with_cause(
    history: History, change: RunChange, changes: Sequence[RunChange], first: Run, second: Run
) -> RunChange:
    cause: Cause | None = None
    if change.aspect == "input" and change.what in ("content", "rows", "schema"):
        cause = _upstream(history, change.name, first, second)
    elif change.aspect in ("output", "status"):
        cause = _of_output(history, changes, first, second)
    return change if cause is None else _replace(change, cause)


def _replace(change: RunChange, cause: Cause) -> RunChange:
    return RunChange(change.aspect, change.name, change.what, change.before, change.after, cause)


def _of_output(history: History, changes: Sequence[RunChange], first: Run, second: Run) -> Cause:
    """Why outputs differ: what was read first, then how it was worked on."""
    runs = (first.id, second.id)
    for change in changes:
        if change.aspect == "input" and change.what in ("content", "rows", "schema"):
            return _upstream(history, change.name, first, second)
        if change.aspect == "input":
            return Cause("input", f"{change.name} {change.what}", (change.name,), runs)
    return _own(changes, first, second, ())


def _own(changes: Iterable[RunChange], first: Run, second: Run, way: tuple[str, ...]) -> Cause:
    """What two runs that read the same did otherwise."""
    runs = (first.id, second.id)
    own = [change for change in changes if change.aspect in _CAUSES]
    if own:
        aspect = own[0].aspect
        texts = [_words(change) for change in own if change.aspect == aspect]
        more = f" (+{len(texts) - 3})" if len(texts) > 3 else ""
        return Cause(aspect, "; ".join(texts[:3]) + more, way, runs)
    chance = sorted({found[1].lower() for run in (first, second) for found in _CHANCE.finditer(run.plan)})
    if chance:
        return Cause("chance", ", ".join(f"{name}()" for name in chance), way, runs)
    return Cause("unknown", "nothing that is told of the two runs differs", way, runs)


def _words(change: RunChange) -> str:
    if change.what == "text":
        return f"the plan of {change.name}"
    return f"{change.name} {change.before or 'absent'} → {change.after or 'absent'}"


def _upstream(history: History, dataset: str, first: Run, second: Run) -> Cause:
    """Follow a dataset of which two runs read different content to where the difference begins."""
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
        changes = _compare(*makers)
        inputs = [c for c in changes if c.aspect == "input"]
        if pair in seen or not inputs:
            return _own(changes, *makers, way)
        seen.add(pair)
        content = next((c for c in inputs if c.what in ("content", "rows", "schema")), None)
        if content is None:
            return Cause("input", f"{inputs[0].name} {inputs[0].what}", way, (makers[0].id, makers[1].id))
        dataset, (first, second) = content.name, makers


def _version(history: History, run: Run, dataset: str) -> WrittenVersion | None:
    readings: Iterator[RunInputVersion] = history.readings(run)
    return next((reading.version for reading in readings if reading.dataset == dataset), None)


def _grown(
    history: History, old: WrittenVersion, new: WrittenVersion
) -> tuple[str, str, tuple[str | None, str | None]] | None:
    """Whether one version is the other with more added to it, and by whom."""
    for kind, small, large in (("added", old, new), ("removed", new, old)):
        parts = list(history.parts(large))
        if small in (part.version for part in parts):
            more = [part.run.id for part in parts if part.version.number > small.number]
            text = f"{more[-1]}{f' and {len(more) - 1} more' if len(more) > 1 else ''} added to {large.dataset}"
            return kind, text, (None, more[-1]) if kind == "added" else (more[-1], None)
    return None
