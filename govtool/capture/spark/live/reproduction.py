"""Facts that a run of a live session is compared by: files as they were read and written, code, arguments, the plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from govtool.capture.spark.analyzed.place_names import places_of
from govtool.capture.spark.execution import Reading
from govtool.capture.spark.identity import DatasetPlace, path_name
from govtool.capture.spark.live.batches import DRIVER_LEAVES
from govtool.capture.spark.live.spool import Line, Process
from govtool.capture.spark.redact import clean_config, clean_value
from govtool.model.file_listing import FileListing, listing_from
from govtool.model.reproduction import FunctionCode, Reproduction, function_from
from govtool.model.run import Run, RunInput, RunOutput, Software
from govtool.spark.live.plans.files import summed

_OVERWRITE = "spark.sql.sources.partitionOverwriteMode"


def with_reproduction(run: Run, lines: Sequence[Line], process: Process) -> Run:
    """Return a run with its code, effective settings, and the facts that a later run is compared by.

    Args:
        run: As its first execution has it.
        lines: The executions of its action.
        process: The process that it ran in.
    """
    return replace(
        run,
        software=tuple(sorted({*run.software, *_modules(process)})),
        config=_settings(run, lines, process),
        reproduction=_reproduction(lines, process),
    )


# ---- inputs and outputs ---------------------------------------------------------------------------------------


def inputs_as_listed(
    inputs: Sequence[RunInput], lead: Line, lines: Iterable[Line], readings: Iterable[Reading]
) -> tuple[RunInput, ...]:
    """Return inputs with the files that the plans listed, unless something shows that others were read.

    Args:
        inputs: As the plans have them.
        lead: The execution that gives the action its times.
        lines: The executions of the action, and the queries behind the rows of the driver that they read.
        readings: The meaning of their plans.
    """
    places = [place for reading in readings for place in reading.places.values()]
    by_name = {name.id: place.id for place in places for name in (place.name, *place.aliases)}
    facts = dict(_relations(lines, by_name))
    return tuple(_input(read, facts[read.dataset], lead) if read.dataset in facts else read for read in inputs)


def outputs_as_left(outputs: Iterable[RunOutput], lines: Sequence[Line]) -> tuple[RunOutput, ...]:
    """Return outputs with their files as they were right after the write."""
    found = [line for line in lines if isinstance(line.get("left"), Mapping)]
    if not found:
        return tuple(outputs)
    left, written = _listing(found[-1]["left"]), _listing(found[-1].get("written"))
    return tuple(replace(output, left=left, written=written) for output in outputs)


def _relations(lines: Iterable[Line], by_name: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The facts of each relation of files that was read, by the id of its dataset."""
    for line in lines:
        for leaf in (line.get("leaves") or {}).values():
            if isinstance(leaf, Mapping) and isinstance(leaf.get("listing"), Mapping):
                places = places_of(leaf)
                for place in places:
                    own = leaf if len(places) == 1 else {**leaf, "listing": _below(place, leaf["listing"])}
                    yield by_name.get(place.id, place.id), own


def _below(place: DatasetPlace, listing: Mapping[str, object]) -> object:
    """The part of a listing that is below one of the places that were read; None where it cannot be told apart."""
    listed = listing.get("listed")
    if not isinstance(listed, list) or not listed:
        return None
    files = [(str(uri), int(size), int(modified)) for uri, size, modified in listed]
    own = [file for file in files if _is_below(place, file[0])]
    return {**summed(own), **{key: value for key, value in listing.items() if key == "changed"}}


def _is_below(place: DatasetPlace, uri: str) -> bool:
    name, root = path_name(uri), place.name
    return name.namespace == root.namespace and f"{name.name}/".startswith(f"{root.name.rstrip('/')}/")


def _input(read: RunInput, facts: Mapping[str, object], lead: Line) -> RunInput:
    listed = facts["listing"]
    listing = _listing(listed)
    if listing is None or not isinstance(listed, Mapping):
        return read
    options = facts.get("options")
    named = {str(name): str(value) for name, value in options.items()} if isinstance(options, Mapping) else {}
    read = replace(read, options=tuple(sorted((name, clean_value(name, value)) for name, value in named.items())))
    problem = _unsettled(read, listing, listed.get("changed"), lead)
    if problem:
        return replace(read, unsettled=problem)
    return replace(read, listing=listing, identity=read.identity or listing.identity)


def _unsettled(read: RunInput, listing: FileListing, changed: object, lead: Line) -> str:
    """Return the reason why the files that were read may not be those that were listed."""
    started, ended = _milliseconds(lead.get("started")), _milliseconds(lead.get("ended"))
    if started is not None and listing.modified > started:
        return "a file is younger than the run"
    # A file that became another after the run had ended was read as it was listed.
    if isinstance(changed, int) and (ended is None or changed <= ended):
        return "a file changed while the run read it"
    if read.files == listing.files and read.bytes not in (None, listing.size):
        return "Spark read another number of bytes than were listed"
    return ""


def _milliseconds(seconds: object) -> float | None:
    return seconds * 1000 if isinstance(seconds, int | float) else None


def _listing(value: object) -> FileListing | None:
    try:
        return listing_from(value) if isinstance(value, Mapping) else None
    except (KeyError, TypeError, ValueError):
        return None


# ---- the job --------------------------------------------------------------------------------------------------


def _modules(process: Process) -> Iterator[Software]:
    """Modules of the job's own, by name and digest: those that its end tells, else those of its start."""
    modules = (process.end or {}).get("modules") or process.facts.get("modules")
    if isinstance(modules, Mapping):
        for name, digest in modules.items():
            yield Software(str(name), str(digest))


def overwrites_partitions(line: Line, process: Process) -> bool:
    """Whether an overwrite replaces only the partitions that it has rows for, by the settings of its session."""
    return _changed([line], _effective(process)).get(_OVERWRITE, "").lower() == "dynamic"


def _settings(run: Run, lines: Iterable[Line], process: Process) -> dict[str, str]:
    """The settings of a run, with the values of those that count whether or not anybody set them."""
    return clean_config(_changed(lines, {**_effective(process), **run.config}))


def _effective(process: Process) -> dict[str, str]:
    for session in process.sessions:
        if isinstance(session.get("effective"), Mapping):
            return {str(key): str(value) for key, value in session["effective"].items()}
    return {}


def _changed(lines: Iterable[Line], settings: dict[str, str]) -> dict[str, str]:
    """Settings as they were when an action began."""
    for line in lines:
        changed = line.get("settings")
        if isinstance(changed, Mapping):
            settings.update({str(key): str(value) for key, value in changed.items()})
    return settings


def _reproduction(lines: Sequence[Line], process: Process) -> Reproduction:
    facts = process.facts
    arguments = facts.get("arguments")
    signatures = [str(line["signature"]) for line in lines if line.get("signature")]
    functions = [str(each) for line in lines for each in line.get("unstable") or ()]
    return Reproduction(
        key=str(facts.get("key") or ""),
        arguments=tuple(str(each) for each in arguments) if isinstance(arguments, list) else None,
        signature=max(signatures, key=len, default=""),
        functions=tuple(dict.fromkeys(functions)),
        driver_data=_driver_data(lines, process),
        python=_python(lines),
    )


def _python(lines: Iterable[Line]) -> tuple[FunctionCode, ...] | None:
    """The Python functions of the plans; None where a plan calls some and the spool does not have them."""
    found: dict[FunctionCode, None] = {}
    for line in lines:
        if line.get("signature") and line.get("python", ()) is None:
            return None
        found.update({function_from(each): None for each in line.get("python") or () if isinstance(each, Mapping)})
    return tuple(found)


def _driver_data(lines: Iterable[Line], process: Process) -> tuple[str, ...] | None:
    """Digests of the data of the driver that the plans read; None if some of it has none."""
    digests = {
        number: str(line.get("data") or "")
        for line in process.streams
        if line.get("e") == "local"
        for number in line.get("ids") or ()
    }
    found: dict[str, None] = {}
    for line in lines:
        found.update({str(each): None for each in line.get("local") or ()})
        for ids in _driver_ids(line):
            if not ids & digests.keys():
                continue
            digest = next(digests[number] for number in ids if number in digests)
            if not digest:
                return None
            found[digest] = None
    return tuple(sorted(found))


def _driver_ids(line: Line) -> Iterator[set[int]]:
    """The ids of the columns of each leaf whose rows the driver may have made."""
    for node in line.get("plan") or ():
        if isinstance(node, Mapping) and node.get("c") in DRIVER_LEAVES:
            trees = [tree[0] for tree in node.get("output") or () if isinstance(tree, list) and tree]
            yield {tree["exprId"] for tree in trees if isinstance(tree.get("exprId"), int)}
