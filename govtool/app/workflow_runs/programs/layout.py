"""A recorded program as a workflow run: which action read what another one of the run wrote, file by file.

A file is known by place, size and time, so that a dataset that is written several times in a run has as many contents.
What an action read is cut into pieces: for each write of the run its files, and the files that were there before. Files
that the same actions read are one piece, so that each record is one, whoever reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from govtool.app.workflow_runs.programs.actions import ProgramAction, RecordedProgram, module_names, short_names
from govtool.errors import FormatError
from govtool.model.workflow_run import BoundaryRelation, ModuleInvocation, RelationFile, WorkflowRun
from govtool.records.execute.inputs import relations
from govtool.records.execute.places import Place, place_of
from govtool.records.plan.nodes import Break, File, Plan, Relation
from govtool.records.plan.tree import walk_nodes

_SLACK = 5
"""Milliseconds by which a file may be older than the begin of its write, as clocks go."""
_PLAIN = frozenset({"parquet", "csv", "json", "text", "orc"})
"""Formats of files that hold nothing but rows."""
_TEXT = frozenset({"csv", "json", "text"})
"""Formats in which options decide what a record is."""
_OF_VALUES = frozenset(
    {
        "inferschema",
        "dateformat",
        "timestampformat",
        "timestampntzformat",
        "enforceschema",
        "nullvalue",
        "nanvalue",
        "positiveinf",
        "negativeinf",
        "emptyvalue",
        "locale",
        "prefersdate",
        "primitivesasstring",
        "prefersdecimal",
        "samplingratio",
        "path",
    }
)
"""Options of text that change values, and not what a record is."""
LeafKey = tuple[int, int]
"""An action's place in its program, and the number of a leaf of its plan."""


@dataclass(frozen=True, slots=True)
class ProgramSource:
    """Files that no action of the run wrote, and that the same leaves read.

    Attributes:
        leaf: A leaf that reads them, with these files only, numbered as it does.
        version: The version of all that the leaf reads.
        columns: All columns that leaves read of them.
        otherwise: Why its records are not those of the leaf that names them; empty: they are.
        beside: Then the sources that have those records.
    """

    leaf: Relation
    version: str
    columns: tuple[str, ...]
    otherwise: str = ""
    beside: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ProgramLayout:
    """A program as a workflow run.

    Attributes:
        run: The run: one execution, an invocation an action.
        program: The program.
        plans: The plan of each action; None where it cannot be read.
        reasons: For actions without a plan, the reason.
        pieces: The relations that each leaf reads, with its files of them.
        sources: Relations that no action of the run made, by path.
        outputs: The path of what each action made, where it made something.
    """

    run: WorkflowRun
    program: RecordedProgram
    plans: tuple[Plan | None, ...]
    reasons: Mapping[int, str]
    pieces: Mapping[LeafKey, tuple[tuple[str, tuple[File, ...]], ...]]
    sources: Mapping[str, ProgramSource]
    outputs: Mapping[int, str]


def lay_out(program: RecordedProgram, plan_of: Callable[[ProgramAction], tuple[Plan | None, str]]) -> ProgramLayout:
    """The layout of a program.

    Args:
        program: The program.
        plan_of: Gives the plan of an action, or the reason why there is none.
    """
    return _Layout(program, plan_of).whole()


def summary_run(program: RecordedProgram) -> WorkflowRun:
    """A program as a workflow run, for lists: its invocations without their inputs and files."""
    outputs = {at: action.output for at, action in enumerate(program.actions) if action.output}
    return _run(program, _invocations(program, outputs, {}), (), {})


@dataclass(slots=True)
class _Layout:
    program: RecordedProgram
    plan_of: Callable[[ProgramAction], tuple[Plan | None, str]]
    reasons: dict[int, str] = field(default_factory=dict)
    written: dict[int, tuple[File, ...]] = field(default_factory=dict)
    writers: dict[Place, list[int]] = field(default_factory=dict)

    def whole(self) -> ProgramLayout:
        """Everything."""
        plans = [self._plan(at, action) for at, action in enumerate(self.program.actions)]
        for at, action in enumerate(self.program.actions):
            self.written[at] = written_files(action)
            for file in (*self.written[at], *other_files(action)):
                self.writers.setdefault(place_of(file), []).append(at)
        leaves = {(at, leaf.leaf): leaf for at in range(len(plans)) for leaf in self._leaves(at, plans[at])}
        owners = {key: {file: self._owner(key[0], leaf, file) for file in leaf.files} for key, leaf in leaves.items()}
        sources, of_file = _sources(leaves, owners)
        outputs = {at: self._path(at) for at, action in enumerate(self.program.actions)}
        pieces = {key: tuple(_pieces(key, leaf, owners[key], of_file, outputs)) for key, leaf in leaves.items()}
        read_by: dict[int, list[str]] = {}
        for (at, _), parts in pieces.items():
            read_by.setdefault(at, []).extend(path for path, _ in parts)
        makers = {path: writer for writer, path in outputs.items()}
        inputs = {at: self._inputs(at, plans[at], read_by, makers) for at in range(len(plans))}
        for read in inputs.values():  # what cannot be told apart hangs on the records that it may be
            read.update((other, None) for path in list(read) if path in sources for other in sources[path].beside)
        known = {path: _source_relation(path, each) for path, each in sources.items()}
        known.update((outputs[at], self._relation(outputs[at], at)) for at in outputs)
        names = _relation_names(self.program, sources)
        run = _run(self.program, _invocations(self.program, outputs, inputs, names), _edges(inputs), known)
        return ProgramLayout(run, self.program, tuple(plans), self.reasons, pieces, sources, outputs)

    def _plan(self, at: int, action: ProgramAction) -> Plan | None:
        plan, reason = self.plan_of(action)
        if plan is None:
            self.reasons[at] = reason
        return plan

    def _leaves(self, at: int, plan: Plan | None) -> list[Relation]:
        if plan is not None:
            return relations(plan.root)
        return list(inputs_as_listed(self.program.actions[at]))

    def _path(self, at: int) -> str:
        """What an action made: the dataset, and the action, as others of the run may write it again."""
        action = self.program.actions[at]
        return f"{action.output or 'driver'}@{action.number}"

    def _relation(self, path: str, at: int) -> BoundaryRelation:
        files = tuple(map(_relation_file, self.written[at]))
        return BoundaryRelation(path, "parquet" if _are_parquet(files) else "", "", files)

    # ---- owners -----------------------------------------------------------------------------------------------------

    def _owner(self, at: int, leaf: Relation, file: File) -> int | None:
        """The action of the run that wrote a file before another one read it; None: it was there before."""
        exact = [writer for writer in self.writers.get(place_of(file), ()) if writer < at]
        return exact[-1] if exact else self._by_time(at, leaf, file)

    def _by_time(self, at: int, leaf: Relation, file: File) -> int | None:
        """The last write to the dataset in whose time the file was made, where files of the write are not known."""
        actions = self.program.actions
        fitting = [
            writer
            for writer in range(at)
            if actions[writer].output == leaf.dataset and not self.written[writer] and _in_time(actions[writer], file)
        ]
        return fitting[-1] if fitting else None

    def _inputs(
        self, at: int, plan: Plan | None, read_by: Mapping[int, Sequence[str]], makers: Mapping[str, int]
    ) -> dict[str, int | None]:
        """What an action read: paths, with the action that made them."""
        own = list(read_by.get(at, ()))
        if has_hidden_inputs(self.program.actions[at], plan):
            # Rows of an RDD may be of anything that its run had read, or had written before.
            run = self.program.actions[at].application
            mates = dict.fromkeys(n for n, action in enumerate(self.program.actions) if action.application == run)
            own += [path for mate in mates for path in read_by.get(mate, ()) if makers.get(path) not in mates]
            own += [path for path, maker in makers.items() if maker < at and maker in mates]
        return {path: makers.get(path) for path in dict.fromkeys(own)}


def written_files(action: ProgramAction) -> tuple[File, ...]:
    """The files that a write made, those included that are gone by now; none where they are not known."""
    from govtool.records.split_plans import relation_of

    listed = action.run.outputs[0].written if action.run.outputs else None
    listing = tuple(File(number, *file) for number, file in enumerate(listed.listed if listed is not None else ()))
    found = relation_of(action.record.written, action.output) if action.record is not None else None
    if found is None:
        return listing
    exact = {place_of(file) for file in listing}  # the times of writes, which the record goes by, may touch
    own = tuple(file for file in found.files if not exact or place_of(file) in exact)
    return own if len(own) >= len(listing) else listing


def _in_time(action: ProgramAction, file: File) -> bool:
    begin, end = (_milliseconds(text) for text in (action.run.started, action.run.ended))
    return begin is None or end is None or begin - _SLACK <= file.modified <= end + _SLACK


def _milliseconds(text: str | None) -> int | None:
    return int(datetime.fromisoformat(text).timestamp() * 1000) if text else None


def other_files(action: ProgramAction) -> Iterator[File]:
    """Files of an action that writes into several datasets, but for the first."""
    for output in action.run.outputs[1:]:
        listed = output.written.listed if output.written is not None else ()
        yield from (File(number, *file) for number, file in enumerate(listed))


def has_files(leaf: Relation) -> bool:
    """Return whether the files of a leaf are known; none may be all of them in formats that list their files."""
    return bool(leaf.files) or leaf.format in _PLAIN


def has_hidden_inputs(action: ProgramAction, plan: Plan | None) -> bool:
    """Return whether an action read what its plan does not name."""
    if plan is None:
        record = action.record
        is_listed = record is not None and record.plan and not record.breaks and not record.program
        return not is_listed or not all(map(has_files, inputs_as_listed(action)))
    nodes = list(walk_nodes(plan.root))
    return any(
        (isinstance(node, Break) and not node.children) or (isinstance(node, Relation) and not has_files(node))
        for node in nodes
    )


def inputs_as_listed(action: ProgramAction) -> Iterator[Relation]:
    """The inputs of an action whose plan cannot be read, from what was recorded of its write, else of its run."""
    from govtool.app.records.tables import listed_inputs
    from govtool.records.plan.types import Struct

    if action.record is not None:
        with suppress(FormatError):
            yield from listed_inputs(action.record)
            return
    for number, read in enumerate(action.run.inputs):
        listed = read.listing.listed if read.listing is not None else ()
        files = tuple(File(ordinal, *file) for ordinal, file in enumerate(listed))
        suffix = "parquet" if _are_parquet(files) else "files"
        yield Relation(number, read.dataset, suffix, files, (), Struct(()))


# ---- pieces ----------------------------------------------------------------------------------------------------------


def _sources(
    leaves: Mapping[LeafKey, Relation], owners: Mapping[LeafKey, Mapping[File, int | None]]
) -> tuple[dict[str, ProgramSource], dict[tuple[LeafKey, Place], str]]:
    """Files that no action wrote, put together by the leaves that read them; and the relation of each leaf's files.

    Records of a file have the same tokens however it is read: those of the first leaf.
    """
    readers: dict[Place, dict[tuple[object, ...], list[tuple[LeafKey, File]]]] = {}
    for key, leaf in leaves.items():
        for file, owner in owners[key].items():
            if owner is None:
                readers.setdefault(place_of(file), {}).setdefault(_kind(leaf), []).append((key, file))
    groups: dict[tuple[object, ...], list[list[tuple[LeafKey, File]]]] = {}
    named: dict[tuple[object, ...], tuple[LeafKey, list[File]]] = {}
    for kinds in readers.values():
        every = [each for found in kinds.values() for each in found]
        together = frozenset(key for key, _ in every)
        for kind, found in kinds.items():
            groups.setdefault((kind, together), []).append(found)
            named.setdefault((kind, together), (every[0][0], []))[1].append(every[0][1])
    sources: dict[str, ProgramSource] = {}
    of_file: dict[tuple[LeafKey, Place], str] = {}
    namers: dict[str, LeafKey] = {}
    for group, members in groups.items():
        first, (namer, own) = leaves[members[0][0][0]], named[group]
        path = _free_name(first.dataset, sources)
        keys = {key for found in members for key, _ in found}
        names = dict.fromkeys(column.name for key in keys for column in leaves[key].columns)
        leaf = replace(first, dataset=leaves[namer].dataset, files=tuple(own))
        otherwise = "" if _splits_alike(first, leaves[namer]) else "its records are split otherwise by another read"
        sources[path] = ProgramSource(leaf, _version(leaves[namer]), tuple(names), otherwise)
        namers[path] = namer
        of_file.update(((key, place_of(file)), path) for found in members for key, file in found)
    for path, source in sources.items():
        if source.otherwise:
            beside = frozenset(of_file[namers[path], place_of(file)] for file in source.leaf.files)
            sources[path] = replace(source, beside=beside)
    return sources, of_file


def _splits_alike(one: Relation, two: Relation) -> bool:
    """Return whether two reads of files give the same records in the same order, maybe as other values."""
    if one.format not in _TEXT and two.format not in _TEXT:
        return True
    return one.format == two.format and _splitting(one) == _splitting(two)


def _splitting(leaf: Relation) -> dict[str, str]:
    return {name.lower(): value for name, value in leaf.options if name.lower() not in _OF_VALUES}


def _kind(leaf: Relation) -> tuple[object, ...]:
    """What reads files as the same records: of other formats than Parquet, options and schema belong to it."""
    if leaf.format == "parquet":
        return ("parquet",)
    return (leaf.format, leaf.schema, leaf.options)


def _version(leaf: Relation) -> str:
    from govtool.records.split_plans import listing_version

    return leaf.version or listing_version(leaf.files)


def _free_name(dataset: str, used: Iterable[str]) -> str:
    names = set(used)
    number, name = 1, dataset
    while name in names:
        number += 1
        name = f"{dataset}~{number}"
    return name


def _pieces(
    key: LeafKey,
    leaf: Relation,
    owners: Mapping[File, int | None],
    of_file: Mapping[tuple[LeafKey, Place], str],
    outputs: Mapping[int, str],
) -> Iterator[tuple[str, tuple[File, ...]]]:
    found: dict[str, list[File]] = {}
    for file in leaf.files:
        owner = owners[file]
        path = of_file[(key, place_of(file))] if owner is None else outputs[owner]
        found.setdefault(path, []).append(file)
    yield from ((path, tuple(files)) for path, files in found.items())


# ---- the run ---------------------------------------------------------------------------------------------------------


def _relation_file(file: File) -> RelationFile:
    return RelationFile(file.uri, file.size, file.modified)


def _are_parquet(files: Iterable[File | RelationFile]) -> bool:
    listed = list(files)
    return bool(listed) and all(file.uri.endswith(".parquet") for file in listed)


def _source_relation(path: str, source: ProgramSource) -> BoundaryRelation:
    return BoundaryRelation(path, source.leaf.format, "", tuple(map(_relation_file, source.leaf.files)))


def _relation_names(program: RecordedProgram, sources: Mapping[str, ProgramSource]) -> dict[str, str]:
    """The name of each dataset in the run: short, and the shortest for what the run writes."""
    made = short_names(action.output for action in program.actions if action.output)
    every = short_names([*made, *(each.leaf.dataset for each in sources.values())])
    return {**every, **made}


def _invocations(
    program: RecordedProgram,
    outputs: Mapping[int, str],
    inputs: Mapping[int, Mapping[str, int | None]],
    names: Mapping[str, str] | None = None,
) -> tuple[ModuleInvocation, ...]:
    known = names if names is not None else short_names(each.output for each in program.actions if each.output)
    counts: dict[str, int] = {}
    found = []
    last = last_contents(program)
    for at, (action, module) in enumerate(zip(program.actions, module_names(program), strict=True)):
        counts[module] = counts.get(module, 0) + 1
        name = known.get(action.output, module)
        read = tuple(
            (_name_of(path, maker, program, known), path, "" if maker is None else program.actions[maker].number)
            for path, maker in inputs.get(at, {}).items()
        )
        made = ((name, outputs[at]),) if at in outputs else ()
        kept = (name,) if last[at] else ()
        found.append(
            ModuleInvocation(1, action.number, module, counts[module], read, outputs=made, kept=kept if made else ())
        )
    return tuple(found)


def _name_of(path: str, maker: int | None, program: RecordedProgram, names: Mapping[str, str]) -> str:
    if maker is None:
        return names.get(path, names.get(path.rpartition("~")[0], path))
    own = program.actions[maker]
    return names.get(own.output, f"query_{own.number}")


def last_contents(program: RecordedProgram) -> list[bool]:
    """For each action, whether what it wrote is there at the end of the run: nothing of the run replaced it."""
    replaced: set[str] = set()
    found = []
    for action in reversed(program.actions):
        found.append(action.output not in replaced)
        if action.output and _replaces(action):
            replaced.add(action.output)
    return found[::-1]


def _replaces(action: ProgramAction) -> bool:
    return bool(action.run.outputs) and action.run.outputs[0].mode in ("overwrite", "errorifexists", "")


def _edges(inputs: Mapping[int, Mapping[str, int | None]]) -> tuple[tuple[int, int], ...]:
    return tuple((maker, at) for at, read in inputs.items() for maker in read.values() if maker is not None)


def _run(
    program: RecordedProgram,
    invocations: tuple[ModuleInvocation, ...],
    edges: tuple[tuple[int, int], ...],
    known: Mapping[str, BoundaryRelation],
) -> WorkflowRun:
    made = {at: each.outputs[0][0] for at, each in enumerate(invocations) if each.outputs}
    return WorkflowRun(
        id=program.application,
        workflow=program.job,
        status=program.status,
        mode="records",
        applications=(program.application,),
        started=program.started,
        ended=program.ended,
        error=program.error,
        edges=tuple((invocations[maker].node, invocations[at].node, made[maker]) for maker, at in edges),
        invocations=invocations,
        relations=known,
        whole=1,
    )
