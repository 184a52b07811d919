"""The run that an action of a live session is: with what it ran, what it read and wrote in figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from govtool.capture.spark.analyzed.place_names import place_of
from govtool.capture.spark.dependencies import PlanDependencies
from govtool.capture.spark.executed import PLAN, PLAN_TEXT, moment
from govtool.capture.spark.execution import Reading, WrittenDataset
from govtool.capture.spark.flow import paths_of
from govtool.capture.spark.identity import column_path, path_name, table_name
from govtool.capture.spark.live.spool import Line, Process
from govtool.capture.spark.redact import clean_config, first_line
from govtool.model.run import Batches, Run, RunInput, RunOutput, Software
from govtool.model.version import ContentIdentity
from govtool.redaction import clean_text

_VERSIONED = ("delta", "iceberg")
"""Formats that number the states of a table."""


@dataclass(frozen=True, slots=True)
class LiveRuns:
    """The runs of one process."""

    process: Process
    commit: str = ""
    """The state of the script's repository: a commit, ``+`` behind it if there were changes."""

    def user(self, line: Line) -> str:
        """Return the user of the run."""
        return str(self._session(line).get("user") or "")

    def id_of(self, line: Line) -> str:
        """The id of an execution's run."""
        number = line.get("execution")
        if number is None:
            # A streaming query that is started again from its checkpoint keeps its id, and runs once more.
            number = line.get("run") or line.get("query") or f"{self.process.name}-{line.get('n')}"
        return f"{line.get('application') or self.process.name}/{number}"

    def run(self, line: Line, *, batches: Batches | None = None, text: bool = False) -> Run:
        """A run: how it ended, and with what it ran.

        Args:
            line: The execution that it is named after.
            batches: The batches of a streaming query that it processed.
            text: Its plan is known as text only.
        """
        session = self._session(line)
        conf = session.get("conf")
        return Run(
            id=self.id_of(line),
            job="",
            status="complete" if line.get("ok") else "failed",
            how=PLAN_TEXT if text else PLAN,
            application=str(line.get("application") or ""),
            user=self.user(line),
            started=moment(line.get("started")),
            ended=moment(line.get("ended")),
            error=first_line(str(line.get("error") or "")),
            software=self._software(session),
            config=clean_config(conf) if isinstance(conf, Mapping) else {},
            host=str(self.process.facts.get("host") or ""),
            batches=batches,
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

    def _session(self, line: Line) -> Line:
        known = [s for s in self.process.sessions if s.get("application") == line.get("application") and "spark" in s]
        return known[0] if known else {}


def script_name(process: Process) -> str:
    """The name of a process's script: that of its file, or of its module."""
    module = process.facts.get("module")
    if module:
        return str(module)
    script = str(process.facts.get("script") or "").replace("\\", "/").rstrip("/")
    name = clean_text(str(next((s.get("name") for s in process.sessions if s.get("name")), "")))
    return script.rsplit("/", 1)[-1] or name or "spark"


def inputs_of(flow: PlanDependencies, lines: Sequence[Line], readings: Sequence[Reading]) -> tuple[RunInput, ...]:
    """Return the inputs of an action, in order of their names.

    Args:
        flow: Of what it computes.
        lines: Its executions.
        readings: The meaning of their plans.
    """
    places = {identity: place for reading in readings for identity, place in reading.places.items()}
    columns = {dataset: known for reading in readings for dataset, known in reading.columns.items()}
    by_name = {name.id: place.id for place in places.values() for name in (place.name, *place.aliases)}
    figures = _figures(lines, by_name)
    versions = {dataset: version for line in lines for dataset, version in _versions(line).items()}
    behind = dict.fromkeys([*flow.reads, *(read for _, view in flow.views for read in view.reads)])
    found = []
    for dataset in sorted(behind):
        total = max(figures.get(dataset, [{}]), key=lambda f: (f.get("rows", 0), f.get("bytes", 0)))
        fields = tuple(sorted((path, type_ or "") for path, type_ in columns.get(dataset, {}).items()))
        rows, bytes_, files = (total.get(key) for key in ("rows", "bytes", "files"))
        found.append(RunInput(dataset, rows, bytes_, files, versions.get(dataset), fields))
    return tuple(found)


def _figures(lines: Sequence[Line], by_name: Mapping[str, str]) -> dict[str, list[dict[str, int]]]:
    """Rows, bytes and files that were scanned of each dataset, an entry an execution."""
    figures: dict[str, list[dict[str, int]]] = {}
    for line in lines:
        summed: dict[str, dict[str, int]] = {}
        for scan in (line.get("metrics") or {}).get("scans") or ():
            dataset = next((by_name[name] for name in _scan_names(scan) if name in by_name), None)
            if dataset is not None:
                total = summed.setdefault(dataset, {})
                for key in ("rows", "bytes", "files"):
                    if isinstance(scan.get(key), int):
                        total[key] = total.get(key, 0) + scan[key]
        for dataset, total in summed.items():
            figures.setdefault(dataset, []).append(total)
    return figures


def outputs_of(written: WrittenDataset, flow: PlanDependencies, lines: Iterable[Line]) -> tuple[RunOutput, ...]:
    """Return the outputs of an action."""
    total: dict[str, int] = {}
    for line in lines:
        total = (line.get("metrics") or {}).get("write") or total
    names = written.columns
    paths = paths_of(flow.columns) if names is None else [column_path(name) for name in names]
    fields = tuple((path, "") for path in dict.fromkeys(paths))
    rows, bytes_, files = (total.get(key) for key in ("rows", "bytes", "files"))
    return (RunOutput(written.place.id, written.output_mode, rows, bytes_, files, fields=fields),)


def _scan_names(scan: Mapping[str, Any]) -> Iterable[str]:
    if scan.get("table"):
        yield table_name(str(scan["table"])).id
    if scan.get("name"):
        yield table_name(str(scan["name"])).id
    if scan.get("paths"):
        names = {path_name(str(path)).id for path in scan["paths"]}
        if len(names) == 1:  # what one scan reads of several datasets is counted together
            yield names.pop()
    elif scan.get("name"):
        yield path_name(str(scan["name"]).rpartition(" ")[2]).id


def _versions(line: Line) -> dict[str, ContentIdentity]:
    """Versions of Delta and Iceberg tables that were read."""
    found = {}
    for leaf in (line.get("leaves") or {}).values():
        facts = leaf if isinstance(leaf, Mapping) else {}
        version = str(facts.get("version") or "")
        place = place_of(facts) if version else None
        kind = next((kind for kind in _VERSIONED if kind in str(facts.get("relation", "")).lower()), None)
        if place is not None and kind is not None and version.lstrip("-").isdigit():
            found[place.id] = ContentIdentity(kind, int(version), "", 0, 0)
    return found
