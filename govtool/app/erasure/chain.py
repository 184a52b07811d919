"""Recorded writes in topological order: a write comes after those whose files it read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.app.erasure.hanging import code_not_found, hanging_by_code, hangs, is_before
from govtool.app.erasure.module_jobs import CallWithJobs, JobsOfModules
from govtool.app.records.exchange import FileExchange
from govtool.app.records.runs import of_run, recorded_beside_damage
from govtool.app.records.tables import listed_inputs, run_order
from govtool.errors import UnknownNameError, UsageError
from govtool.records.execute.places import Place, place_of
from govtool.records.split_plans import relation_of

if TYPE_CHECKING:
    from govtool.app.records.unreadable import UnreadableRun
    from govtool.app.workflow_runs.programs.driver_rows import WritesThatHang
    from govtool.model.records import RecordRun
    from govtool.records.plan.nodes import Relation
    from govtool.store import Commit, Reader


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A recorded write with its files.

    Attributes:
        run: The write.
        reads: Its inputs, by the dataset that each is a part of.
        written: The files that it left; None: not known.
    """

    run: RecordRun
    reads: tuple[Relation, ...]
    written: Relation | None

    @property
    def output(self) -> str:
        """The dataset that it wrote."""
        return self.run.output

    def read_places(self) -> set[Place]:
        """The files that it read."""
        return {place_of(file) for leaf in self.reads for file in leaf.files}

    def written_places(self) -> set[Place]:
        """The files that it left."""
        return set() if self.written is None else {place_of(file) for file in self.written.files}


@dataclass(frozen=True, slots=True)
class RecordedChain:
    """Recorded writes in topological order.

    Attributes:
        links: The writes.
        owners: The run that wrote a file.
        queries: Runs whose rows went to the driver.
        lost: Runs that belong to it, or may, and whose records cannot be read.
        jobs: Calls of modules that made some of it, and whose functions ran jobs.
        hanging: Gives the writes of an application that hang, as its code shows, on what it collected.
    """

    links: tuple[ChainLink, ...]
    owners: dict[Place, str] = field(default_factory=dict)
    queries: tuple[ChainLink, ...] = ()
    lost: tuple[UnreadableRun, ...] = ()
    jobs: JobsOfModules = field(default_factory=JobsOfModules)
    hanging: WritesThatHang = code_not_found

    def reading(self) -> tuple[ChainLink, ...]:
        """The writes, and the queries behind them."""
        return (*self.links, *self.queries)

    def datasets(self) -> dict[str, None]:
        """The datasets that are read or written, inputs first."""
        read = [leaf.dataset for link in self.reading() for leaf in link.reads]
        received = [dataset for each in self.jobs.calls for dataset in each.received]
        lost = [read.dataset for each in self.lost for read in each.run.inputs]
        return dict.fromkeys([*read, *received, *lost, *self.made()])

    def made(self) -> dict[str, str]:
        """The datasets that are written, and a run that wrote each."""
        lost = {name: each.run.id for each in self.lost for name in sorted(each.writes())}
        return {**lost, **{link.output: link.run.run for link in self.links}}

    def without_plan(self) -> dict[str, CallWithJobs]:
        """The datasets that no recorded plan reads, and a call of a module that received each and ran jobs."""
        read = {leaf.dataset for link in self.reading() for leaf in link.reads}
        known = read | self.made().keys()
        return {name: each for each in self.jobs.calls for name in each.received if name not in known}

    def read_by_driver(self) -> dict[str, str]:
        """The inputs that no write read, and what did, or may have."""
        written = {leaf.dataset for link in self.links for leaf in link.reads}
        calls = {name: call.name for call in self.jobs.calls for name in call.received}
        found = {name: f"no recorded plan reads it, but jobs of {calls[name]} may have" for name in self.without_plan()}
        for query in self.queries:
            for name in (leaf.dataset for leaf in query.reads if leaf.dataset not in written):
                what = f"jobs of {calls[name]}" if name in calls else f"the query {query.run.run}"
                found.setdefault(name, f"no write reads it, but {what} did")
        return found


def recorded_chain(store: Reader, commit: Commit, run: str | None, all_runs: bool) -> RecordedChain:
    """The writes of a run, or with ``all_runs`` all that are joined with it by files; without a run, all there are.

    Args:
        store: The store.
        commit: Writes are those of this commit.
        run: A run, an application, ``JOB~1``, or a run of a workflow.
        all_runs: Go on to the runs that exchange files with these.

    Raises:
        UsageError: The store has no records (``usage.no-records``).
        UnknownNameError: There is no such run.
        IntegrityError: The records of the run cannot be read, or those of runs of which nothing is known.
    """
    known, lost = recorded_beside_damage(store, commit)
    links = [chain_link(each) for each in known]
    hanging = hanging_by_code(store, commit, Path.cwd())
    if run is not None:
        may_be_it = [each for each in lost if each.is_named(run)]
        chosen = {each.run for each in _chosen(store, commit, known, run, may_be_it)}
        wanted = _joined(links, chosen, hanging) if all_runs else chosen
        links = [link for link in links if link.run.run in wanted]
        lost = _joined_by_name(links, lost) if all_runs else may_be_it
    jobs = JobsOfModules.of(store, commit, Path.cwd()).making({link.output for link in links})
    if run is not None:
        links += _queries_of(links, map(chain_link, known), jobs, all_runs)
    return replace(ordered(links), lost=tuple(lost), jobs=jobs, hanging=hanging)


def _joined(links: Sequence[ChainLink], chosen: set[str], hanging: WritesThatHang) -> set[str]:
    """Runs that exchange files with some, and what a program wrote that hangs on rows which it collected of theirs."""
    exchange = exchange_of(links)
    found, earlier = exchange.joined(chosen), set[str]()
    while found != earlier:
        queries = [link for link in links if link.run.run in found and not link.output]
        more = {link.run.run for link in links if link.output and _hangs(link, queries, hanging)}
        found, earlier = exchange.joined(found | more), found
    return found


def _hangs(link: ChainLink, queries: Sequence[ChainLink], hanging: WritesThatHang) -> bool:
    """Whether a write hangs, as the code of its program shows, on what one of some queries collected before it."""
    if not any(is_before(query.run, link.run) for query in queries):
        return False
    return hangs(hanging, link.run)


def _queries_of(
    links: Sequence[ChainLink], known: Iterable[ChainLink], jobs: JobsOfModules, all_runs: bool
) -> list[ChainLink]:
    """Queries that may have decided about some writes, and exchange no files with them.

    They are the jobs of modules, and with ``all_runs`` the queries of each program.
    """
    have = {link.run.run for link in links}
    programs = {link.run.application for link in links if all_runs}
    programs -= {name for each in jobs.calls for name in each.applications}
    queries = (link for link in known if not link.output and link.run.run not in have)
    return [each for each in queries if each.run.application in programs or jobs.ran(each)]


def _joined_by_name(links: Iterable[ChainLink], lost: Sequence[UnreadableRun]) -> list[UnreadableRun]:
    """The runs that may exchange files with some writes, directly or not: those with a dataset in common."""
    names = {name for link in links for name in (link.output, *(leaf.dataset for leaf in link.reads)) if name}
    found: list[UnreadableRun] = []
    size = -1
    while size != len(names):
        size = len(names)
        found = [each for each in lost if names & each.datasets()]
        names.update(*(each.datasets() for each in found))
    return found


def _chosen(
    store: Reader, commit: Commit, known: Sequence[RecordRun], run: str, may_be_it: Sequence[UnreadableRun]
) -> list[RecordRun]:
    try:
        return of_run(store, commit, known, run, with_queries=True)
    except (UnknownNameError, UsageError) as error:
        found = _of_recorded(store, commit, known, run)
        if found:
            return found
        raise may_be_it[0].error() if may_be_it else error from None


def _of_recorded(store: Reader, commit: Commit, known: Sequence[RecordRun], run: str) -> list[RecordRun]:
    """The actions of a program, or of the modules of a workflow's run; none where there is no such run."""
    from govtool.app.workflow_runs.programs.recorded import find_recorded_run
    from govtool.app.workflow_runs.run_graph import require_records
    from govtool.app.workflow_runs.stored import actions_of

    try:
        found = find_recorded_run(store, commit, run)
    except UnknownNameError:
        return []
    if found.program is not None:
        ids = {action.run.id for action in found.program.actions}
        return [each for each in known if each.run in ids]
    require_records(found.run)
    return actions_of(found.run, known)


def chain_link(run: RecordRun) -> ChainLink:
    """A write with its files, read from what is stored of it."""
    return ChainLink(run, listed_inputs(run), relation_of(run.written, run.output))


def exchange_of(links: Iterable[ChainLink]) -> FileExchange:
    """The files that writes exchange."""
    found = FileExchange()
    for link in links:
        found.add(link.run.run, link.read_places(), link.written_places())
    return found


def ordered(links: Iterable[ChainLink]) -> RecordedChain:
    """Writes in topological order; those that do not depend on each other by their runs' ids.

    An input whose files one dataset of the chain has is a part of that dataset, by whatever path it was read.
    """
    given = sorted(links, key=lambda link: run_order(link.run.run))
    writes = {link.run.run: link for link in given if link.output}
    owners = {place: name for name, link in writes.items() for place in link.written_places()}
    outputs = {place: writes[name].output for place, name in owners.items()}
    order = exchange_of(writes.values()).ordered(writes)
    done = [_within(writes[name], outputs) for name in order]
    return RecordedChain(tuple(done), owners, tuple(_within(link, outputs) for link in given if not link.output))


def _within(link: ChainLink, outputs: Mapping[Place, str]) -> ChainLink:
    """A write whose inputs have the name of the dataset, by place, that their files belong to."""
    reads = []
    for leaf in link.reads:
        names = {outputs.get(place_of(file), "") for file in leaf.files}
        name = names.pop() if len(names) == 1 else ""
        reads.append(replace(leaf, dataset=name) if name else leaf)
    return replace(link, reads=tuple(reads))
