"""From actions to runs, and to derivations of the datasets that they wrote: for every source of executions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from govtool.capture.spark.definitions import Defined, definition
from govtool.capture.spark.executed import MAX_TEXT, Executed, attempted, fingerprint, outcome_of
from govtool.capture.spark.execution import Action, E, Reading, RunSource, WrittenDataset
from govtool.capture.spark.flow import derivation
from govtool.capture.spark.identity import DatasetPlace, column_path, joined, output_paths
from govtool.capture.spark.nesting import actions_of
from govtool.model import Derivation, Diagnostic, EdgeKind, Statement
from govtool.model.run import Run, RunOutput

_INTERNAL = re.compile(r"/_delta_log(?:/|\Z)|/_spark_metadata(?:/|\Z)|/metadata/[^/]*\.avro\Z")
_UNKNOWN = Diagnostic("break.source", "warning", "the query of the command is in none of the executions")
_UNPLACED = Diagnostic("break.target", "warning", "the target of the write is not in the plan")


def interpret(executions: Iterable[E], source: RunSource[E]) -> Iterator[Executed]:
    """Return the actions of the executions of one root, in the order in which they began.

    Args:
        executions: Of one root.
        source: Makes runs of them.
    """
    for action in actions_of(executions):
        yield executed(action, source)


def is_internal(dataset: str) -> bool:
    """Return whether this is what a table format keeps beside its data."""
    return _INTERNAL.search(dataset) is not None


def executed(action: Action[E], source: RunSource[E]) -> Executed:
    """Return the result of one action.

    Args:
        action: Its executions.
        source: Makes runs of them.
    """
    reading, lead = action.main.reading, action.lead.reading
    run = source.run(action)
    if reading is None or lead is None:
        return _unread(run, action)
    if action.written is None and lead.defined is not None:
        return _defined(run, lead, lead.defined)
    if action.written is not None:
        if _is_left_alone(action.written, run, source.outputs(action), len(action.members)):
            return Executed(run, "", None, "ignored")
        return _wrote(run, action, source, action.written, reading)
    return _returned(run, action, source, reading)


def _is_left_alone(written: WrittenDataset, run: Run, outputs: tuple[RunOutput, ...], members: int) -> bool:
    """Return whether a write that leaves alone what is there already (``mode("ignore")``, ``IF NOT EXISTS``) did so."""
    if written.save_mode != "ignore" or run.status != "complete":
        return False
    if written.alone:
        return all(output.files == 0 for output in outputs)
    return written.nested and members == 1


def _unread(run: Run, action: Action[E]) -> Executed:
    """An action whose plan could not be read, or that Spark refused: then nothing ran."""
    problem = action.lead.problem or action.main.problem
    if problem is None:
        return Executed(run, "", None, "ignored")
    return Executed(replace(run, breaks=(problem,)), "", None, "opaque")


def _defined(run: Run, reading: Reading, defined: Defined) -> Executed:
    """Return the effects of a command on the catalog; none if it failed."""
    place, notes = defined.place, [Diagnostic(code, "warning", text) for code, text in defined.breaks]
    outputs = (RunOutput(place.id, defined.does),) if place is not None else ()
    run = replace(run, outputs=outputs, plan=reading.normal, breaks=tuple(notes))
    if run.status != "complete" or place is None:
        return Executed(run, "", None, "opaque" if notes else "ignored")
    made = definition(defined, _statement(defined.kind, reading.normal, run)) if defined.mode else None
    if made is not None and notes:
        made = _noted(made._replace(columns_complete=False), notes)
    places = {each.id: each for each in (place, defined.source) if each is not None}
    outcome = made.status if made is not None and not notes else "opaque" if notes else "ignored"
    return Executed(run, place.id, made, outcome, places)


def _wrote(run: Run, action: Action[E], source: RunSource[E], written: WrittenDataset, reading: Reading) -> Executed:
    """An action that wrote a dataset."""
    target, normal = written.place.id, source.evidence(action)
    notes = list(dict.fromkeys(reading.notes))
    if written.expects and not reading.flow.columns and run.status == "complete":
        notes.append(_UNKNOWN)
    places = _places(action)
    places[target] = joined(places.get(target), written.place)
    statement = _statement(written.kind, normal, run)
    made = _noted(_derivation(written, reading, statement), [n for n in notes if n not in reading.flow.breaks])
    made = _without_itself(made) if written.rewrites else made
    if not reading.flow.columns and written.columns:
        made = made._replace(columns_complete=False, status="partial")
    return _executed(run, action, source, target, made, notes, places, normal)


def _returned(run: Run, action: Action[E], source: RunSource[E], reading: Reading) -> Executed:
    """An action that wrote nothing that is known: a query, or a command that says nothing of columns."""
    notes = list(dict.fromkeys(reading.notes))
    places, normal = _places(action), source.evidence(action)
    if reading.unplaced:
        if not any(note.code == _UNPLACED.code for note in notes):
            notes.append(_UNPLACED)
        return _executed(run, action, source, "", None, notes, places, normal)
    reads = [dataset for dataset in reading.flow.reads if not is_internal(dataset)]
    if reading.command or not reads or action.lead.is_inference:
        run = replace(run, inputs=source.inputs(action))
        return Executed(run, "", None, "ignored")
    target = f"query:{fingerprint(normal)}"
    made = derivation(reading.flow, target, _statement("select", normal, run), target_kind="query", mode="replace")
    made = _noted(made, [note for note in notes if note not in reading.flow.breaks])
    return _executed(run, action, source, target, made, notes, places, normal)


def _executed(
    run: Run,
    action: Action[E],
    source: RunSource[E],
    target: str,
    made: Derivation | None,
    notes: list[Diagnostic],
    places: dict[str, DatasetPlace],
    normal: str,
) -> Executed:
    """An action with its run: inputs, outputs, plan and breaks."""
    if made is not None and run.status != "complete":
        made = attempted(made, run.status)
    run = replace(
        run,
        inputs=source.inputs(action),
        outputs=source.outputs(action),
        plan=normal,
        breaks=tuple(note for note in notes if note.severity != "info"),
    )
    views = _views(action.main.reading, places, run)
    return Executed(run, target, made, outcome_of(made, ignored=False), places, _columns(action), views)


def _views(reading: Reading | None, places: Mapping[str, DatasetPlace], run: Run) -> tuple[Derivation, ...]:
    """Views of the catalog that were read: what they stand for."""
    found = []
    for name, flow in reading.flow.views if reading is not None else ():
        if name in places:
            view = WrittenDataset(places[name], "create_view", "", "replace")
            viewed = Reading(flow, "", case_sensitive=reading.case_sensitive if reading is not None else False)
            found.append(_derivation(view, viewed, _statement("create_view", f"view {name}", run)))
    return tuple(found)


def _places(action: Action[E]) -> dict[str, DatasetPlace]:
    """The datasets that an action read, with their other names."""
    found: dict[str, DatasetPlace] = {}
    for member in action.members:
        for identity, place in (member.reading.places if member.reading is not None else {}).items():
            if not is_internal(identity):
                found[identity] = joined(found.get(identity), place)
    return found


def _columns(action: Action[E]) -> dict[str, dict[str, str | None]]:
    """The columns that an action saw of the datasets that it read."""
    found: dict[str, dict[str, str | None]] = {}
    for member in action.members:
        for dataset, columns in (member.reading.columns if member.reading is not None else {}).items():
            known = found.setdefault(dataset, {})
            for path, type_ in columns.items():
                known[path] = type_ or known.get(path)
    return found


def _derivation(written: WrittenDataset, reading: Reading, statement: Statement) -> Derivation:
    columns: list[str] | None = None
    names = [column.name for column in reading.flow.columns]
    if written.columns is not None:
        columns = [column_path(name, case_sensitive=reading.case_sensitive) for name in written.columns]
        if written.hidden and len(columns) < len(names):  # names that are left out are those of what is written
            columns += output_paths(names[len(columns) :])
    return derivation(
        reading.flow,
        written.place.id,
        statement,
        target_kind=written.place.kind,
        mode=written.mode,
        columns=columns,
        namespace=written.place.name.namespace,
    )


def _statement(kind: str, normal: str, run: Run) -> Statement:
    time = run.started or run.ended
    return Statement(
        fingerprint=fingerprint(normal),
        kind=kind,
        dialect="spark",
        file="",
        how=run.how,
        text=normal[:MAX_TEXT],
        run=run.id,
        principal=run.user or None,
        first_seen=time,
        last_seen=time,
    )


def _noted(made: Derivation, notes: list[Diagnostic]) -> Derivation:
    """A derivation with more notes."""
    if not notes:
        return made
    extra = tuple(replace(note, target=note.target or made.target) for note in notes)
    worse = any(note.severity != "info" for note in extra)
    diagnostics = tuple(dict.fromkeys((*made.diagnostics, *extra)))
    return made._replace(diagnostics=diagnostics, status="partial" if worse else made.status)


def _without_itself(made: Derivation) -> Derivation:
    """An UPDATE or MERGE without what stays as it is: rows and columns that are copied from the table into itself."""
    if made.mode not in ("update", "delete"):
        return made
    kept = tuple(
        edge
        for edge in made.edges
        if edge.source.dataset != made.target
        or edge.kind not in (EdgeKind.IDENTITY, EdgeKind.READ)
        or (edge.kind is EdgeKind.IDENTITY and edge.source.path != edge.target_path)
    )
    return made._replace(edges=kept)
