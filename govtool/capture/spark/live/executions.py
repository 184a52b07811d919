"""From what a process wrote down to runs, and to what they say of the datasets that they wrote.

Executions that one action started (CREATE TABLE AS has two, saveAsTable three) share a root and are one run: the
outermost names the table, the one that wrote tells the path, the rows and the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.places import common_path, place_of
from govtool.capture.spark.analyzed.read import Analyzed, read_plan
from govtool.capture.spark.analyzed.tree import nodes_of, tree_of
from govtool.capture.spark.commands import SAVE_MODES, Written, written_by
from govtool.capture.spark.definitions import Defined, defined_by, definition
from govtool.capture.spark.dependencies import Flow
from govtool.capture.spark.drawn import drawn
from govtool.capture.spark.eventlog.executions import HOW as PLAN_TEXT
from govtool.capture.spark.eventlog.executions import Executed, attempted, named
from govtool.capture.spark.flow import derivation, flow_of, paths_of
from govtool.capture.spark.identity import Place, column_path, path_name, table_name
from govtool.capture.spark.live.spool import Line, Process
from govtool.capture.spark.plantext.read import read_plan as read_plan_text
from govtool.capture.spark.plantext.scans import Names
from govtool.capture.spark.plantext.tree import PlanTextError
from govtool.capture.spark.redact import clean_config, first_line
from govtool.model import Derivation, Diagnostic, EdgeKind, Statement
from govtool.model.record import Identity
from govtool.model.run import Run, RunInput, RunOutput, Software

HOW = "plan"
MAX_TEXT = 4000

_BREAKS = {
    "plan-too-large": "its plan was too large to be written down",
    "plan-unreadable": "its plan could not be written down",
}
_TABLE_LOG = re.compile(r"/_delta_log(?:/|\Z)")
"""What Delta Lake asks its own log is no query of the job's."""
_VERSIONED = {"delta": "delta", "iceberg": "iceberg"}


@dataclass(slots=True)
class _Read:
    """An execution and its plan."""

    line: Line
    plan: Analyzed | None
    flow: Flow
    written: Written | None
    problem: str = ""


@dataclass(slots=True)
class Interpreter:
    """Reads what one process wrote down."""

    process: Process
    source: str
    expand_views: bool = False
    """See through views of the catalog."""
    commit: str = ""
    """The state of the script's repository: a commit, ``+`` behind it if there were changes."""
    _streams: dict[int, p.Node] = field(default_factory=dict)
    _driver: set[int] = field(default_factory=set)

    def actions(self) -> Iterator[Executed]:
        """What the executions of the process did, in order."""
        self._notes()
        script = script_name(self.process)
        for group in self._groups():
            singles = [_single(line) for line in group]
            together = [parts[0] for parts in singles if len(parts) == 1]
            apart = [[part] for parts in singles if len(parts) > 1 for part in parts]
            for lines in [together, *apart] if together else apart:
                for executed in self._actions([self._read(line) for line in lines]):
                    yield named(executed, script, self.source)
        for line in self.process.connected:
            yield named(self._connected(line), script, self.source)

    # ---- what belongs together --------------------------------------------------------------------------------

    def _groups(self) -> list[list[Line]]:
        """Executions by root, in order of their end; an execution without a number stands alone, unless the next one
        writes what it wrote.
        """
        groups: dict[tuple[str, object], list[Line]] = {}
        for line in self.process.executions:
            root = line.get("root", line.get("execution"))
            key = (str(line.get("application", "")), root if root is not None else f"n{line.get('n')}")
            groups.setdefault(key, []).append(line)
        found: list[list[Line]] = []
        for group in groups.values():
            alone = group[0].get("execution") is None
            if alone and found and found[-1][0].get("execution") is None and _same_query(found[-1][-1], group[0]):
                found[-1].extend(group)
            else:
                found.append(group)
        return found

    def _read(self, line: Line) -> _Read:
        if not isinstance(line.get("plan"), list):
            return _Read(line, None, Flow(), None, str(line.get("break") or "plan-unreadable"))
        try:
            plan = read_plan(line, streams=self._streams, driver=frozenset(self._driver))
            return _Read(line, plan, flow_of(plan.root, expand_views=self.expand_views), written_by(line, plan))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
            return _Read(line, None, Flow(), None, f"plan-unreadable: {type(error).__name__}: {error}"[:200])

    def _notes(self) -> None:
        """Data of the driver, and batches of streams: what their columns are."""
        plans: dict[str, p.Node] = {}
        for line in self.process.streams:
            ids = [number for number in line.get("ids") or () if isinstance(number, int)]
            if line.get("e") == "local":
                self._driver.update(ids)
            elif line.get("e") == "stream" and isinstance(line.get("plan"), list):
                try:
                    plans[str(line.get("stream"))] = read_plan(line).root
                except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
                    continue
            elif line.get("e") == "batch":
                stream = plans.get(str(line.get("stream")))
                if stream is not None:
                    self._streams.update(dict.fromkeys(ids, stream))

    # ---- one action ----------------------------------------------------------------------------------------------

    def _actions(self, group: list[_Read]) -> Iterator[Executed]:
        numbered = (each for each in group if each.line.get("execution") is not None)
        root = next((each for each in numbered if each.line["execution"] == each.line.get("root")), group[-1])
        writers = [each for each in group if each.written is not None]
        if root.written is not None or (root.plan is not None and root.plan.command and writers):
            yield self._action(root, group, self._joined(root, writers))
            return
        yield self._action(root, group, None)
        for each in writers:  # an action inside of another: an expression that runs queries, a procedure
            yield self._action(each, [each], each.written)

    def _joined(self, root: _Read, writers: list[_Read]) -> Written | None:
        """What is written, by all that tell it: the outermost has the name, the innermost the place."""
        written = root.written or (writers[-1].written if writers else None)
        if written is None:
            return None
        aliases = dict.fromkeys(written.place.aliases)
        columns = written.columns
        for each in writers:
            inner = each.written
            if inner is None or inner is root.written:
                continue
            if inner.parts > written.parts > 0 and inner.place.name.name.endswith(_last(written.place)):
                written = replace(written, place=replace(inner.place, aliases=written.place.aliases), parts=inner.parts)
            elif inner.place.name != written.place.name:
                aliases[inner.place.name] = None
            aliases.update(dict.fromkeys(inner.place.aliases))
            columns = columns or inner.columns
        return replace(written, place=replace(written.place, aliases=tuple(aliases)), columns=columns)

    def _action(self, root: _Read, group: list[_Read], written: Written | None) -> Executed:
        if root.plan is not None and (root.flow.columns or root.plan.kind):
            main = root
        else:
            main = next((each for each in group if each.flow.columns), root)
        line = root.line
        run_id = self._run_id(line)
        status = "complete" if line.get("ok") else "failed"
        defined = defined_by(line.get("command"))
        if defined is not None and written is None:
            return self._defined(line, run_id, status, defined)
        if main.plan is None:
            return self._unread(root, run_id, status)
        normal = drawn(main.plan.root)
        flow = main.flow
        asked = root.plan is not None and not root.plan.command and bool(flow.reads) and not line.get("inference")
        asked = asked and not all(_TABLE_LOG.search(read) for read in flow.reads)
        ignored = written is None and not asked
        places = {place.id: place for each in group if each.plan is not None for place in each.plan.places}
        made: Derivation | None = None
        target = ""
        if written is not None:
            target = written.place.id
            places[target] = _with_aliases(places.get(target), written.place)
            normal = f"{written.kind} {written.save_mode} {target}\n{normal}"
            made = self._derivation(flow, target, written, self._statement(written.kind, normal, line, run_id))
        elif not ignored:
            target = f"query:{_digest(normal)}"
            statement = self._statement("select", normal, line, run_id)
            made = derivation(flow, target, statement, target_kind="query", mode="replace")
        views = tuple(
            self._derivation(
                view,
                name,
                Written(places[name], "create_view", "", "replace", None),
                self._statement("create_view", f"view {name}", line, run_id),
            )
            for name, view in flow.views
            if name in places
        )
        if made is not None and status != "complete":
            made = attempted(made, status)
        outcome = "ignored" if ignored else made.status if made is not None else "opaque"
        if made is not None and made.edges and all(edge.kind is EdgeKind.OPAQUE for edge in made.edges):
            outcome = "opaque"
        run = self._run(
            line,
            run_id,
            status,
            inputs=self._inputs(flow, group, places),
            outputs=self._outputs(written, flow, group),
            plan="" if ignored else normal,
            breaks=() if ignored else tuple(note for note in flow.breaks if note.severity != "info"),
        )
        columns: dict[str, dict[str, str | None]] = {}
        for each in group:
            for dataset, known in each.plan.columns if each.plan is not None else ():
                columns.setdefault(dataset, {}).update({path: type_ or None for path, type_ in known})
        return Executed(run, target, made, outcome, {} if ignored else places, {} if ignored else columns, views)

    def _defined(self, line: Line, run_id: str, status: str, defined: Defined) -> Executed:
        """What a command did to the catalog; if it failed, that is nothing."""
        normal = f"{defined.kind} {defined.place.id if defined.place is not None else '?'}"
        notes = tuple(Diagnostic(code, "warning", message) for code, message in defined.breaks)
        outputs = (RunOutput(defined.place.id, defined.does),) if defined.place is not None else ()
        run = self._run(line, run_id, status, outputs=outputs, plan=normal, breaks=notes)
        if status != "complete" or defined.place is None:
            return Executed(run, "", None, "opaque" if notes else "ignored")
        target = defined.place.id
        made = definition(defined, self._statement(defined.kind, normal, line, run_id)) if defined.mode else None
        outcome = made.status if made is not None else "opaque" if notes else "ignored"
        places = {place.id: place for place in (defined.place, defined.source) if place is not None}
        return Executed(run, target, made, outcome, places)

    def _connected(self, line: Line) -> Executed:
        """A write over Spark Connect: its target as the client said it, and the plan as the server explained it."""
        run_id = self._run_id(line)
        status = "complete" if line.get("ok") else "failed"
        facts = line.get("command")
        try:
            text = read_plan_text(str(line.get("text") or ""), Names(case_sensitive=False))
        except PlanTextError as error:
            unread = _Read(line, None, Flow(), None, f"{line.get('break') or 'plan-unreadable'}: {error}")
            executed = self._unread(unread, run_id, status)
            executed.run = replace(executed.run, how=PLAN_TEXT)
            return executed
        place = place_of(facts) if isinstance(facts, Mapping) else None
        if place is None and text.write is not None:
            place, kind, save, mode = text.write.place, text.write.kind, text.write.save_mode, text.write.mode
            names = text.write.columns
        elif place is None:
            return Executed(self._run(line, run_id, status), "", None, "ignored")
        else:
            save, mode = SAVE_MODES.get(str((facts or {}).get("mode", "")).lower(), ("", "append"))
            kind, names = "insert", None
        target = place.id
        normal = f"{kind} {save} {target}\n{text.normal}"
        statement = replace(self._statement(kind, normal, line, run_id), how=PLAN_TEXT)
        written = Written(place, kind, save, mode, names)
        made = self._derivation(text.flow, target, written, statement)
        if status != "complete":
            made = attempted(made, status)
        places = {identity: found.place for identity, found in text.sources.items()}
        places[target] = _with_aliases(places.get(target), place)
        run = self._run(
            line,
            run_id,
            status,
            inputs=tuple(RunInput(read) for read in sorted(text.flow.reads)),
            outputs=self._outputs(written, text.flow, []),
            plan=normal,
            breaks=tuple(note for note in (*text.notes, *text.flow.breaks) if note.severity != "info"),
        )
        return Executed(replace(run, how=PLAN_TEXT), target, made, made.status, places)

    def _derivation(self, flow: Flow, target: str, written: Written, statement: Statement) -> Derivation:
        columns = None if written.columns is None else [column_path(name) for name in written.columns]
        return derivation(
            flow,
            target,
            statement,
            target_kind=written.place.kind,
            mode=written.mode,
            columns=columns,
            namespace=written.place.name.namespace,
        )

    def _unread(self, root: _Read, run_id: str, status: str) -> Executed:
        problem, _, detail = root.problem.partition(":")
        if problem == "plan-unanalyzed":  # Spark could not make sense of the query: nothing ran
            return Executed(self._run(root.line, run_id, status), "", None, "ignored")
        text = _BREAKS.get(problem, "its plan could not be read")
        note = Diagnostic("break.plan", "error", f"{run_id}: {text}{':' if detail else ''}{detail}")
        return Executed(self._run(root.line, run_id, status, breaks=(note,)), "", None, "opaque")

    def _statement(self, kind: str, normal: str, line: Line, run_id: str) -> Statement:
        time = _time(line.get("started", line.get("ended")))
        return Statement(
            fingerprint=_digest(normal),
            kind=kind,
            dialect="spark",
            file="",
            how=HOW,
            text=normal[:MAX_TEXT],
            run=run_id,
            principal=str(self._session(line).get("user") or "") or None,
            first_seen=time,
            last_seen=time,
        )

    # ---- the run ----------------------------------------------------------------------------------------------------

    def _session(self, line: Line) -> Line:
        known = [s for s in self.process.sessions if s.get("application") == line.get("application") and "spark" in s]
        return known[0] if known else {}

    def _run_id(self, line: Line) -> str:
        number = line.get("root", line.get("execution"))
        if number is None:
            number = line.get("query") or f"{self.process.name}-{line.get('n')}"
        return f"{line.get('application') or self.process.name}/{number}"

    def _run(
        self,
        line: Line,
        run_id: str,
        status: str,
        *,
        inputs: tuple[RunInput, ...] = (),
        outputs: tuple[RunOutput, ...] = (),
        plan: str = "",
        breaks: tuple[Diagnostic, ...] = (),
    ) -> Run:
        session = self._session(line)
        conf = session.get("conf")
        return Run(
            id=run_id,
            job="",
            status=status,
            how=HOW,
            application=str(line.get("application") or ""),
            user=str(session.get("user") or ""),
            started=_time(line.get("started")),
            ended=_time(line.get("ended")),
            error=first_line(str(line.get("error") or "")),
            software=self._software(session),
            config=clean_config(conf) if isinstance(conf, Mapping) else {},
            host=str(self.process.facts.get("host") or ""),
            inputs=inputs,
            outputs=outputs,
            plan=plan,
            breaks=breaks,
        )

    def _software(self, session: Line) -> tuple[Software, ...]:
        facts = self.process.facts
        found = {Software(name, str(session[name])) for name in ("spark", "java", "scala") if session.get(name)}
        if facts.get("python"):
            found.add(Software("python", str(facts["python"])))
        if facts.get("digest"):
            found.add(Software(f"script:{script_name(self.process)}", str(facts["digest"])))
        if self.commit:
            found.add(Software("git", self.commit))
        packages = (self.process.end or {}).get("packages")
        if isinstance(packages, Mapping):
            found.update(Software(str(name), str(version)) for name, version in packages.items())
        return tuple(sorted(found))

    def _inputs(self, flow: Flow, group: list[_Read], places: Mapping[str, Place]) -> tuple[RunInput, ...]:
        by_name = {name.id: place.id for place in places.values() for name in (place.name, *place.aliases)}
        figures: dict[str, list[dict[str, int]]] = {}
        for each in group:
            summed: dict[str, dict[str, int]] = {}
            for scan in (each.line.get("metrics") or {}).get("scans") or ():
                dataset = next((by_name[name] for name in _scan_names(scan) if name in by_name), None)
                if dataset is not None:
                    total = summed.setdefault(dataset, {})
                    for key in ("rows", "bytes", "files"):
                        if isinstance(scan.get(key), int):
                            total[key] = total.get(key, 0) + scan[key]
            for dataset, total in summed.items():
                figures.setdefault(dataset, []).append(total)
        columns = {dataset: known for each in group if each.plan is not None for dataset, known in each.plan.columns}
        versions = {}
        for each in group:
            versions.update(_versions(each.line))
        behind = dict.fromkeys([*flow.reads, *(read for _, view in flow.views for read in view.reads)])
        found = []
        for dataset in sorted(behind):
            total = max(figures.get(dataset, [{}]), key=lambda f: (f.get("rows", 0), f.get("bytes", 0)))
            found.append(
                RunInput(
                    dataset,
                    total.get("rows"),
                    total.get("bytes"),
                    total.get("files"),
                    versions.get(dataset),
                    tuple(sorted(columns.get(dataset, ()))),
                )
            )
        return tuple(found)

    def _outputs(self, written: Written | None, flow: Flow, group: list[_Read]) -> tuple[RunOutput, ...]:
        if written is None:
            return ()
        total: dict[str, int] = {}
        for each in group:
            total = (each.line.get("metrics") or {}).get("write") or total
        names = written.columns
        paths = paths_of(flow.columns) if names is None else [column_path(name) for name in names]
        fields = tuple((path, "") for path in dict.fromkeys(paths))
        rows, bytes_, files = (total.get(key) for key in ("rows", "bytes", "files"))
        return (RunOutput(written.place.id, written.save_mode, rows, bytes_, files, fields=fields),)


def _last(place: Place) -> str:
    return "." + place.name.name.rpartition(".")[2]


def script_name(process: Process) -> str:
    """The name of a process's script: that of its file, or of its module."""
    module = process.facts.get("module")
    if module:
        return str(module)
    script = str(process.facts.get("script") or "").replace("\\", "/").rstrip("/")
    name = str(next((s.get("name") for s in process.sessions if s.get("name")), ""))
    return script.rsplit("/", 1)[-1] or name or "spark"


def _single(line: Line) -> list[Line]:
    """A multi-insert, a union of commands in one execution, as an execution for each."""
    facts = line.get("commands")
    if not isinstance(facts, list) or not isinstance(line.get("plan"), list):
        return [line]
    try:
        children = tree_of(line["plan"]).children
    except (ValueError, TypeError, AttributeError):
        return [line]
    if len(children) != len(facts):
        return [line]
    made: list[Line] = []
    for number, (child, told) in enumerate(zip(children, facts, strict=True)):
        part = f"{line.get('execution', line.get('query'))}.{number}"
        made.append({**line, "plan": nodes_of(child), "command": told, "execution": part, "root": part, "metrics": {}})
    return made


def _same_query(before: Line, after: Line) -> bool:
    """Whether two executions without numbers are one action: both write, and the same columns by their ids."""
    return bool(before.get("command")) and bool(after.get("command")) and _ids(before) == _ids(after) != ()


def _ids(line: Line) -> tuple[object, ...]:
    try:
        root = read_plan(line).root
        return () if isinstance(root, p.Modify) else tuple(output.id for output in p.outputs_of(root))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return ()


def _with_aliases(known: Place | None, place: Place) -> Place:
    if known is None:
        return place
    return replace(place, aliases=tuple(dict.fromkeys((*known.aliases, *place.aliases))))


def _scan_names(scan: Mapping[str, Any]) -> Iterable[str]:
    if scan.get("table"):
        yield table_name(str(scan["table"])).id
    if scan.get("name"):
        yield table_name(str(scan["name"])).id
    if scan.get("paths"):
        yield path_name(common_path([str(path) for path in scan["paths"]])).id
    elif scan.get("name"):
        yield path_name(str(scan["name"]).rpartition(" ")[2]).id


def _versions(line: Line) -> dict[str, Identity]:
    """Versions of Delta and Iceberg tables that were read."""
    found = {}
    for told in (line.get("leaves") or {}).values():
        facts = told if isinstance(told, Mapping) else {}
        version = str(facts.get("version") or "")
        place = place_of(facts) if version else None
        kind = next((kind for word, kind in _VERSIONED.items() if word in str(facts.get("relation", "")).lower()), None)
        if place is not None and kind is not None and version.lstrip("-").isdigit():
            found[place.id] = Identity(kind, int(version), "", 0, 0)
    return found


def _time(seconds: object) -> str | None:
    if not isinstance(seconds, (int, float)) or not 0 <= seconds < 253_402_300_800:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
