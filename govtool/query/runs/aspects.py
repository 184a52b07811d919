"""The comparison of two runs, aspect by aspect: differences, equality, and aspects that a run does not record.

Content decides before names and times do. Of an output, the files count by folder and content first, whatever they
are called; where these differ, the digest of rows, which has no order. Of an input, the listing that its plan had, and
the content of the versions that the listings are known to be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from govtool.model.reproduction import Reproduction
from govtool.model.run import Run, RunInput, RunOutput
from govtool.model.version import ContentIdentity
from govtool.query.runs.functions import changed_functions, function_gaps
from govtool.query.runs.history import History, Writing
from govtool.query.runs.offsets import changed_offsets, is_restart

ASPECTS = ("input", "code", "arguments", "config", "environment", "plan", "data", "output", "status")
"""In the order in which causes are named."""
ROW_DIGESTS = "[spark] row_digests = true"
"""The setting that records what an answer lacked."""
EQUAL, EQUAL_ROWS, DIFFERENT, UNKNOWN = "equal", "equal rows, files differ", "different", "unknown"
LITERAL = re.compile(r"‹[^›]*›")
"""The digest of a literal in a signature."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The first cause of a difference."""

    kind: str
    """An aspect; ``added`` and ``removed`` for a run that only one side read from, ``no-provenance`` for data that
    changed without a run, ``chance`` for functions that may answer otherwise each time, ``unknown``."""
    text: str
    """Its description, in a few words."""
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
    """``added``, ``removed``, ``content``, ``times`` (same names and sizes), ``files`` (whether the rows differ is not
    known), ``rows``, ``schema``, ``options``, ``mode``, ``value``, ``text``, ``literal``, ``function`` (its code),
    ``captured`` (a value that a Python function took along), ``offsets`` (the part of a stream)."""
    before: str | None
    after: str | None
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class NotComparable:
    """A comparison that is impossible, since a run does not record its subject."""

    aspect: str
    name: str
    which: str
    """``first``, ``second`` or ``both``: the runs without it."""
    why: str = ""
    """The reason, or the setting that records it."""


@dataclass(frozen=True, slots=True)
class OutputVerdict:
    """An output of two runs compared."""

    dataset: str
    verdict: str
    """``equal``, ``equal rows, files differ``, ``different`` or ``unknown``."""
    by: str
    """The decisive comparison."""


def compare_runs(history: History, first: Run, second: Run) -> list[RunChange]:
    """The differences of two runs, in order of their aspects."""
    found: list[RunChange] = []
    found += _inputs(history, first, second)
    found += (RunChange("input", change.source, "offsets", *change[1:]) for change in changed_offsets(first, second))
    code, other = software_of(first), software_of(second)
    found += _values("code", code[0], other[0])
    found += _arguments(first, second)
    found += _values("config", *_settings(first, second))
    found += _values("environment", code[1], other[1])
    found += _plans(first, second)
    found += _functions(first, second)
    found += _driver_data(first, second)
    found += _outputs(first, second)
    if first.status != second.status:
        found.append(RunChange("status", first.job, "value", first.status, second.status))
    return found


# ---- inputs and outputs -----------------------------------------------------------------------------


def _inputs(history: History, first: Run, second: Run) -> Iterator[RunChange]:
    for name, old, new in _paired(first.inputs, second.inputs):
        if old is None or new is None:
            yield _one_sided("input", name, old, new)
            continue
        what = _input_change(history, (first, second), old, new)
        if what:
            yield RunChange("input", name, what, content_text(old.identity), content_text(new.identity))
        if what in (None, "content"):  # of the same files, plans read other rows and columns
            yield from _figures("input", old, new)
        else:  # the same files: which columns a plan reads is the plan's, their types are not
            yield from _retyped(old, new)
        if old.options and new.options and old.options != new.options:
            yield RunChange("plan", name, "options", *_only(old.options, new.options))


def _paired(
    first: Iterable[RunInput], second: Iterable[RunInput]
) -> Iterator[tuple[str, RunInput | None, RunInput | None]]:
    """The inputs of two runs by name; of a dataset that a run read in several versions, equal ones are a pair."""
    olds, news = (_by_dataset(inputs) for inputs in (first, second))
    for name in sorted(olds.keys() | news.keys()):
        left, rest = [], news.get(name, [])
        for old in olds.get(name, ()):
            same = next((new for new in rest if new.identity == old.identity), None)
            if same is None:
                left.append(old)
                continue
            rest.remove(same)
            yield name, old, same
        for one, other in zip_longest(left, rest):
            yield name, one, other


def _by_dataset(inputs: Iterable[RunInput]) -> dict[str, list[RunInput]]:
    found: dict[str, list[RunInput]] = {}
    for each in inputs:
        found.setdefault(each.dataset, []).append(each)
    return found


def _retyped(old: RunInput, new: RunInput) -> Iterator[RunChange]:
    """The columns that both runs read of the same content, under other types."""
    olds, news = dict(old.fields), dict(new.fields)
    names = [name for name in olds if olds[name] != news.get(name, olds[name])]
    if names:
        before, after = (", ".join(f"{name} {types[name]}" for name in names) for types in (olds, news))
        yield RunChange("input", old.dataset, "schema", before, after)


def _input_change(history: History, runs: tuple[Run, Run], old: RunInput, new: RunInput) -> str | None:
    """``content``, ``times``, empty for the same content, None where it is not known."""
    if old.identity is None or new.identity is None:
        return None
    if old.identity == new.identity:
        return ""
    written = _exact(history, runs[0], old), _exact(history, runs[1], new)
    if written[0] is not None and written[1] is not None and _is_same(written[0], written[1]):
        return ""
    if old.listing is not None and new.listing is not None and old.listing.shape == new.listing.shape:
        return "times"
    return "content"


def _exact(history: History, run: Run, read: RunInput) -> Writing | None:
    """The write that left what a run read, by content and not by time alone."""
    readings = zip(run.inputs, history.readings(run), strict=True)
    found = next((reading for each, reading in readings if each == read), None)
    if found is None or found.version is None or not found.exact:
        return None
    return history.writing(found.version)


def _is_same(old: Writing, new: Writing) -> bool:
    if old.version == new.version:
        return True
    whole = old.replaces and new.replaces
    return whole and output_verdict(old.output, new.output).verdict in (EQUAL, EQUAL_ROWS)


def output_verdict(old: RunOutput, new: RunOutput) -> OutputVerdict:
    """Compare what two runs wrote: by the content of files, then by rows, then by what the runs state."""
    name = old.dataset
    if old.content is not None and new.content is not None and old.content == new.content:
        return OutputVerdict(name, EQUAL, "content of the files")
    if old.row_digest and new.row_digest:
        if old.row_digest == new.row_digest:
            return OutputVerdict(name, EQUAL_ROWS, "digest of the rows")
        return OutputVerdict(name, DIFFERENT, "digest of the rows")
    if old.rows is not None and new.rows is not None and old.rows != new.rows:
        return OutputVerdict(name, DIFFERENT, "number of rows")
    if old.content is not None and new.content is not None:
        return OutputVerdict(name, UNKNOWN, "the files differ, and the rows were not digested")
    if old.identity is None or new.identity is None:
        return OutputVerdict(name, UNKNOWN, "the content was not recorded")
    if old.identity == new.identity:
        return OutputVerdict(name, EQUAL, "identity of the content")
    return OutputVerdict(name, DIFFERENT, "identity of the content")


def _outputs(first: Run, second: Run) -> Iterator[RunChange]:
    olds, news = {one.dataset: one for one in first.outputs}, {one.dataset: one for one in second.outputs}
    for name in sorted(olds.keys() | news.keys()):
        old, new = olds.get(name), news.get(name)
        if old is None or new is None:
            yield _one_sided("output", name, old, new)
            continue
        found = output_verdict(old, new)
        sides = content_text(old.content or old.identity), content_text(new.content or new.identity)
        if found.verdict == UNKNOWN and old.content is not None and new.content is not None:
            yield RunChange("output", name, "files", *sides)
        elif found.verdict == DIFFERENT and found.by != "number of rows":
            yield RunChange("output", name, "content", *sides)
        yield from _figures("output", old, new)
        if old.mode != new.mode and old.mode and new.mode:
            yield RunChange("output", name, "mode", old.mode, new.mode)


def _one_sided(aspect: str, name: str, old: RunInput | RunOutput | None, new: RunInput | RunOutput | None) -> RunChange:
    before, after = (None if one is None else content_text(one.identity) for one in (old, new))
    return RunChange(aspect, name, "added" if old is None else "removed", before, after)


def _figures(aspect: str, old: RunInput | RunOutput, new: RunInput | RunOutput) -> Iterator[RunChange]:
    if old.rows is not None and new.rows is not None and old.rows != new.rows:
        yield RunChange(aspect, old.dataset, "rows", f"{old.rows:,}", f"{new.rows:,}")
    if old.fields and new.fields and old.fields != new.fields:
        yield RunChange(aspect, old.dataset, "schema", *_only(old.fields, new.fields))


def content_text(identity: ContentIdentity | None) -> str:
    """An identity in a few words."""
    if identity is None:
        return "?"
    version = "" if identity.version is None else f" version {identity.version}"
    digest = "" if identity.digest == str(identity.version) else f" {identity.short}"
    return f"{identity.kind}{version}{digest}"


def _only(before: Iterable[tuple[str, str]], after: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The pairs that only one side has, or has otherwise; all of them if only their order differs."""
    olds, news = [f"{n} {t}".strip() for n, t in before], [f"{n} {t}".strip() for n, t in after]
    only = [one for one in olds if one not in news], [one for one in news if one not in olds]
    return (", ".join(only[0]), ", ".join(only[1])) if only[0] or only[1] else (", ".join(olds), ", ".join(news))


# ---- the job ----------------------------------------------------------------------------------------


def software_of(run: Run) -> tuple[dict[str, str], dict[str, str]]:
    """The job's own code, and what it ran on; several versions of one name stand together.

    Where the files of the code are known, the commit of their repository says nothing more of them.
    """
    own = ("script:", "module:", "py-file:")
    has_files = any(item.name.startswith(own) for item in run.software)
    code: dict[str, list[str]] = {}
    rest: dict[str, list[str]] = {}
    for item in run.software:
        if item.name == "git" and has_files:
            continue
        mine = item.name.startswith((*own, "git"))
        (code if mine else rest).setdefault(item.name, []).append(item.version)
    if run.host:
        rest["host"] = [run.host]
    return {k: ", ".join(v) for k, v in code.items()}, {k: ", ".join(v) for k, v in rest.items()}


def _settings(first: Run, second: Run) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The settings of both. Only runs with facts for reproduction know defaults: these are left out of one alone."""
    if (first.reproduction is None) == (second.reproduction is None) and not is_restart(first, second):
        return first.config, second.config
    both = first.config.keys() & second.config.keys()
    return {key: first.config[key] for key in both}, {key: second.config[key] for key in both}


def _values(aspect: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[RunChange]:
    if not before or not after:
        return  # one of them does not record it at all: see `not_comparable`
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old != new:
            what = "added" if old is None else "removed" if new is None else "value"
            yield RunChange(aspect, name, what, old, new)


def _facts(run: Run) -> Reproduction:
    return run.reproduction or Reproduction()


def _have_one_key(first: Run, second: Run) -> bool:
    return bool(_facts(first).key) and _facts(first).key == _facts(second).key


def _arguments(first: Run, second: Run) -> Iterator[RunChange]:
    old, new = _facts(first).arguments, _facts(second).arguments
    if old is None or new is None or not _have_one_key(first, second):
        return
    for position, (before, after) in enumerate(zip_longest(old, new), 1):
        if before != after:
            what = "added" if before is None else "removed" if after is None else "value"
            yield RunChange("arguments", f"argument {position}", what, before, after)


def _driver_data(first: Run, second: Run) -> Iterator[RunChange]:
    old, new = _facts(first).driver_data, _facts(second).driver_data
    if old is not None and new is not None and old != new and _have_one_key(first, second):
        yield RunChange("data", "data of the driver", "content", ", ".join(old), ", ".join(new))


def _plans(first: Run, second: Run) -> Iterator[RunChange]:
    old, new = _facts(first).signature, _facts(second).signature
    if not old or not new:
        if first.plan and second.plan and first.plan != second.plan:
            yield RunChange("plan", first.job, "text", *_first_difference(first.plan, second.plan))
        return
    plain = LITERAL.sub("?", old), LITERAL.sub("?", new)
    if plain[0] != plain[1]:
        yield RunChange("plan", first.job, "text", *_first_difference(*plain))
    elif old != new and _have_one_key(first, second):
        before, after = _first_difference(old, new)
        yield RunChange("plan", first.job, "literal", before, after)


def _functions(first: Run, second: Run) -> Iterator[RunChange]:
    old, new = _facts(first).python, _facts(second).python
    if old is not None and new is not None and _have_one_key(first, second):
        for change in changed_functions(old, new):
            yield RunChange("plan", *change)


def _first_difference(before: str, after: str) -> tuple[str | None, str | None]:
    for old, new in zip_longest(before.splitlines(), after.splitlines()):
        if old != new:
            return (None if old is None else old.strip()), (None if new is None else new.strip())
    return before, after


# ---- what cannot be compared ------------------------------------------------------------------------

_WHICH = {(True, True): "both", (True, False): "first", (False, True): "second"}
_UNSEEN = ("break.query", "break.source")
"""Breaks of runs that read something which is none of their inputs."""


def not_comparable(first: Run, second: Run) -> tuple[NotComparable, ...]:
    """Return the comparisons that one of the runs, or both, do not allow."""
    return tuple(_unrecorded(first, second))


def _unrecorded(first: Run, second: Run) -> Iterator[NotComparable]:
    yield from _unrecorded_inputs(first.inputs, second.inputs)
    unseen = [{note.message for note in run.breaks if note.code in _UNSEEN} for run in (first, second)]
    for message in sorted(unseen[0] | unseen[1]):
        yield NotComparable("input", message, _WHICH[message in unseen[0], message in unseen[1]])
    yield from _unrecorded_outputs(first.outputs, second.outputs)
    code, other = software_of(first), software_of(second)
    yield from _missing("code", first.job, code[0], other[0])
    yield from _missing("plan", first.job, first.plan, second.plan)
    yield from _missing("config", first.job, dict(first.config), dict(second.config))
    yield from _missing("environment", first.job, code[1], other[1])
    if first.reproduction is not None or second.reproduction is not None:
        yield from _unrecorded_facts(first, second)


def _missing(aspect: str, name: str, old: object, new: object, why: str = "") -> Iterator[NotComparable]:
    missing = (old is None or old in ("", {}), new is None or new in ("", {}))
    if any(missing):
        which = "both" if all(missing) else "first" if missing[0] else "second"
        yield NotComparable(aspect, name, which, why)


def _unrecorded_inputs(before: Sequence[RunInput], after: Sequence[RunInput]) -> Iterator[NotComparable]:
    news = {one.dataset: one for one in after}
    for old in sorted(before, key=lambda one: one.dataset):
        new = news.get(old.dataset)
        if new is not None:
            why = old.unsettled or new.unsettled
            yield from _missing("input", old.dataset, old.identity, new.identity, why)


def _unrecorded_outputs(before: Sequence[RunOutput], after: Sequence[RunOutput]) -> Iterator[NotComparable]:
    news = {one.dataset: one for one in after}
    for old in sorted(before, key=lambda one: one.dataset):
        new = news.get(old.dataset)
        if new is None or output_verdict(old, new).verdict != UNKNOWN:
            continue
        if old.content is not None and new.content is not None:
            name = f"rows of {old.dataset}"
            yield from _missing("output", name, old.row_digest, new.row_digest, ROW_DIGESTS)
        else:
            sides = old.content or old.identity, new.content or new.identity
            yield from _missing("output", old.dataset, *sides, "it was overwritten before it was read, or is too large")


def _unrecorded_facts(first: Run, second: Run) -> Iterator[NotComparable]:
    old, new = _facts(first), _facts(second)
    if old.key and new.key and old.key != new.key:
        why = "their digests are under different keys"
        yield NotComparable("arguments", first.job, "both", why)
        yield NotComparable("plan", "literals", "both", why)
        return
    yield from _missing("arguments", first.job, old.arguments, new.arguments)
    yield from _missing("plan", "operators and literals", old.signature, new.signature)
    yield from _missing("data", "data of the driver", old.driver_data, new.driver_data)
    if old.python is not None and new.python is not None:
        for gap in function_gaps(old.python, new.python):
            yield NotComparable("plan", gap.name, _WHICH[gap.sides], gap.why)
    elif old.python or new.python:
        yield from _missing("plan", "Python functions", old.python, new.python)
