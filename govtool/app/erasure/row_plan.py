"""An erasure on rows: the subject's rows, followed through recorded writes in topological order.

Each write that a change reaches is evaluated over corrected inputs. Where its content stays as it is, nothing that was
made of it is evaluated.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.answers.row_erasure import Unsearched
from govtool.app.erasure.alone import may_come_alone
from govtool.app.erasure.chain import ChainLink, RecordedChain
from govtool.app.erasure.corrections import Corrections, LeafCorrection
from govtool.app.erasure.deltas import DatasetDelta, file_rows, table_file
from govtool.app.erasure.driver import driver_had, through_driver
from govtool.app.erasure.found import ErasedOutput, ErasedSource, JoinedInput, RowErasure
from govtool.app.erasure.keys import SubjectKeys, Wanted
from govtool.app.erasure.search import SearchedInput, plan_leaves, searched_inputs, written_rows
from govtool.app.erasure.step import CorrectedOutput, corrected_output
from govtool.app.records.keys import declared_keys
from govtool.app.records.opened import OpenedWrite
from govtool.app.records.opening import open_write
from govtool.app.records.unreadable import UnreadableRun, each_name
from govtool.config import load_config
from govtool.errors import EngineError, EvidenceError, GovtoolError, UsageError
from govtool.records.execute.places import Place, place_of
from govtool.records.plan.nodes import File, Relation
from govtool.records.replay.changes import Exclusion, Replacement
from govtool.records.trace.forward import input_key

if TYPE_CHECKING:
    from govtool.store import Commit, Reader


class Unevaluated(Exception):
    """A write that cannot be evaluated over its corrected inputs."""


def row_erasure(store: Reader, commit: Commit, chain: RecordedChain, keys: SubjectKeys) -> RowErasure:
    """Follow a subject's rows through recorded writes.

    Args:
        store: The store.
        commit: Plans are those of this commit.
        chain: The writes.
        keys: Where the subject's rows are looked for.

    Raises:
        UsageError: No row is the subject's (``usage.no-rows``), or its value is none of a column's type.
        UnknownNameError: A column is not there.
    """
    folder = Path(tempfile.mkdtemp(prefix="govtool-erasure-"))
    try:
        return _Walk(store, commit, chain, keys, folder).go()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(slots=True)
class _Walk:
    """The way through the writes, and what it came to so far."""

    store: Reader
    commit: Commit
    chain: RecordedChain
    keys: SubjectKeys
    folder: Path
    sources: dict[str, list[SearchedInput]] = field(default_factory=dict)
    source_keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    outputs: list[ErasedOutput] = field(default_factory=list)
    not_searched: dict[tuple[str, str], Unsearched] = field(default_factory=dict)
    not_reached: dict[tuple[str, str], Unsearched] = field(default_factory=dict)
    _drops: dict[Place, dict[int, int | None]] = field(default_factory=dict)
    """By file the rows that are taken out of it."""
    _corrected: dict[str, CorrectedOutput] = field(default_factory=dict)
    """By run what changes in its output."""
    _unknown: dict[Place, str] = field(default_factory=dict)
    """Files whose corrected rows are not known, with the reason."""
    _uncertain: dict[Place, str] = field(default_factory=dict)
    """Files whose corrected rows are not certain, with the dataset."""
    _joined: dict[str, JoinedInput] = field(default_factory=dict)
    """Inputs that the subject's rows are joined with, by dataset."""
    _alone: dict[Place, str] = field(default_factory=dict)
    """Files of datasets that are unknown as a whole, with the dataset."""
    _driver: dict[str, str] = field(default_factory=dict)
    """Writes with rows that the driver may have had of the subject, with the reason."""
    _writes: dict[str, OpenedWrite] = field(default_factory=dict)
    """Writes whose inputs were searched and that are not evaluated yet."""
    _reached: set[Place] = field(default_factory=set)
    """Files of datasets that the subject's rows reached, changed or not."""
    _unreadable: set[str] = field(default_factory=set)
    """Datasets that the subject's rows may be in by runs whose records cannot be read."""
    _files: int = 0

    def go(self) -> RowErasure:
        """Search every input, and evaluate every write that a change reaches."""
        closed = [each for link in self.chain.reading() for each in self._search_inputs(link)]
        for link, dataset, error in closed:
            self._note_closed(link, dataset, error)
        self._note_without_plan()
        size = -1
        while size != len(self._reached):  # a query of the driver may read what a later write made
            size = len(self._reached)
            for link in self.chain.links:
                self._spread(link)
            for query in self.chain.queries:
                self._note_joined(query)
            for each in self.chain.lost:
                self._spread_unreadable(each)
        self._alone = {place_of(f): name for name, place in self._unsearched_places() for f in place}
        for link in self.chain.links:
            self._visit(link)
        collected = [query for query in self.chain.queries if query.read_places() & self._reached]
        for query, why in driver_had(self.store, self.commit, self.chain, collected):
            self._beyond(query.run.run, why)
        return self._found()

    def _found(self) -> RowErasure:
        """What was found.

        Raises:
            UsageError: No row is the subject's, and none may be where nothing could be searched (``usage.no-rows``).
        """
        found = {name: ErasedSource(name, tuple(parts), self.source_keys[name]) for name, parts in self.sources.items()}
        none = not any(each.rows() for each in found.values()) and not any(each.tokens for each in self.outputs)
        if none and not self._unknown and not self._unreadable:
            searched = ", ".join(self.keys.columns())
            raise UsageError(f"no row matches the subject's keys; columns searched: {searched}", code="usage.no-rows")
        return RowErasure(
            tuple(each for each in found.values() if each.rows()),
            tuple(self.outputs),
            (*self.keys.not_searched, *self.not_searched.values()),
            tuple(self.not_reached.values()),
            tuple(self._joined.values()),
        )

    def _search_inputs(self, link: ChainLink) -> Iterator[tuple[ChainLink, str, GovtoolError]]:
        """Search the inputs of a write that no write before it has read, and give those that cannot be opened."""
        for dataset in dict.fromkeys(leaf.dataset for leaf in link.reads):
            if dataset in self.keys.wanted and self._is_new(link, dataset):
                try:
                    opened = self._writes.get(link.run.run) or open_write(self.store, self.commit, link.run)
                except GovtoolError as error:
                    yield link, dataset, error
                    continue
                self._writes[link.run.run] = opened
                self._search(opened, dataset)

    def _note_closed(self, link: ChainLink, dataset: str, error: GovtoolError) -> None:
        """Note an input of a write that cannot be opened, unless another write led to its files."""
        if self._is_new(link, dataset):
            self.not_searched[dataset, link.run.run] = Unsearched(
                dataset, f"{link.run.run} read it: {error.message}", error.hint or ""
            )
            self._unknown_files(link, dataset, None, f"its input {dataset} cannot be searched")

    def _note_without_plan(self) -> None:
        """Note the inputs that should be searched, and that no recorded plan reads."""
        for dataset, call in self.chain.without_plan().items():
            if dataset in self.keys.wanted:
                why = f"no recorded plan reads it, and it cannot be searched; {call.name} received it, and ran jobs"
                self.not_searched[dataset, ""] = Unsearched(dataset, why)
                for place in call.received[dataset]:
                    self._unknown[place] = f"its input {dataset} cannot be searched"
                    self._reached.add(place)

    def _is_reached(self, link: ChainLink) -> bool:
        return link.output in self.keys.wanted or bool(link.read_places() & self._reached)

    def _spread(self, link: ChainLink) -> None:
        """Note the results that a write derived from rows of the subject, and the inputs it read beside them."""
        if link.run.run not in self._driver:
            why = through_driver(self.store, self.commit, self.chain, link, self._reached)
            why = why or self.chain.jobs.decided(link.output, self._reached, self.chain.queries)
            self._driver.update({link.run.run: why} if why else {})
        if link.run.run in self._driver or self._is_reached(link):
            self._note_joined(link)
            self._reached |= link.written_places()

    def _spread_unreadable(self, lost: UnreadableRun) -> None:
        """Note what a run read and wrote whose records cannot be read, if rows of the subject may have reached it."""
        wanted = self.keys.wanted.keys() & lost.datasets()
        reached = self._unreadable.union(*(each_name([leaf.dataset]) for leaf in self._reached_files()))
        if not (wanted or reached & lost.reads()):
            return
        error = lost.error()
        why, hint = error.message, error.hint or ""
        for name in sorted(wanted & lost.reads()):
            self.not_searched[name, lost.run.id] = Unsearched(name, f"{lost.run.id} read it: {why}", hint)
        for name in sorted(lost.writes()) or [lost.run.id]:
            self.not_reached[name, why] = Unsearched(name, why, hint)
        self._unreadable |= lost.writes()
        for leaf in (
            leaf for link in self.chain.links for leaf in link.reads if each_name([leaf.dataset]) & lost.writes()
        ):
            for place in _places(leaf) - self.chain.owners.keys():
                self._unknown[place] = f"{lost.run.id} may have written files of {leaf.dataset}: {why}"
                self._reached.add(place)

    def _reached_files(self) -> Iterator[Relation]:
        """What writes read and left, where the subject's rows may have reached a file of it."""
        for link in self.chain.links:
            left = () if link.written is None else (link.written,)
            yield from (each for each in (*link.reads, *left) if _places(each) & self._reached)

    def _visit(self, link: ChainLink) -> None:
        deleted, alone = self.keys.wanted.get(link.output, ()), self._rows_alone(link)
        if link.run.run in self._driver and not deleted:
            self._lost(link, self._driver[link.run.run], deleted)
        elif not self._is_reached(link):
            if alone:
                self._lost_alone(link, alone)
        elif deleted or not self._is_cut_off(link):
            self._evaluate(link, deleted, alone)
        elif alone:
            self._lost_alone(link, alone)
        else:
            self.outputs.append(self._sized(ErasedOutput(link, cut=True)))

    def _note_joined(self, link: ChainLink) -> None:
        """Note the inputs of a write that lack the subject's key, beside one that the subject's rows reached."""
        reached = [leaf for leaf in link.reads if {place_of(file) for file in leaf.files} & self._reached]
        unsearched = {each.what for each in self.keys.not_searched}
        for leaf in link.reads if reached else ():
            if leaf.dataset in unsearched:
                self._joined.setdefault(leaf.dataset, JoinedInput(leaf, link.run.run, reached[0].dataset))

    # ---- inputs of which nothing is known -----------------------------------------------------------------------

    def _unsearched_places(self) -> Iterator[tuple[str, tuple[File, ...]]]:
        """The files of inputs that are unknown as a whole."""
        for leaf in (leaf for link in self.chain.reading() for leaf in link.reads):
            if leaf.dataset in self._joined:
                yield leaf.dataset, leaf.files

    def _rows_alone(self, link: ChainLink) -> str:
        """Say why rows of a write may be the subject's although no searched input shows it; empty if they cannot be."""
        names = dict.fromkeys(self._alone[place] for place in link.read_places() if place in self._alone)
        if not names:
            return ""
        try:
            write = self._writes.get(link.run.run) or open_write(self.store, self.commit, link.run)
            alone = may_come_alone(write.plan.root, lambda leaf: any(place_of(f) in self._alone for f in leaf.files))
        except GovtoolError:  # a plan that cannot be read may be of any form
            alone = True
        return f"rows that come of {' and '.join(sorted(names))} alone may be the subject's" if alone else ""

    def _lost_alone(self, link: ChainLink, why: str) -> None:
        """Note a write that can only change through inputs that are unknown."""
        self.outputs.append(self._sized(ErasedOutput(link, unknown=why, cut=True)))
        self._alone.update(dict.fromkeys(link.written_places(), link.output))

    # ---- inputs -------------------------------------------------------------------------------------------------

    def _is_new(self, link: ChainLink, dataset: str) -> bool:
        """Return whether some files of an input were neither searched nor written by a run of the chain."""
        places = {place_of(file) for leaf in link.reads if leaf.dataset == dataset for file in leaf.files}
        seen = {place_of(f) for part in self.sources.get(dataset, ()) for f in part.relation.files}
        return bool(places - seen - self.chain.owners.keys())

    def _search(self, write: OpenedWrite, dataset: str) -> None:
        wanted = self.keys.wanted[dataset]
        lost = [each for each in write.lineage.refused if each.dataset == dataset]
        for each in lost:
            why = f"{each.file} {each.reason}: its rows were read by {write.run.run} and cannot be searched"
            self.not_searched[dataset, each.file] = Unsearched(dataset, why)
            self._unknown_files(write, dataset, each.file, f"its input {dataset} has changed since")
        try:
            parts = searched_inputs(write, dataset, wanted)
        except EngineError as error:
            self.not_searched[dataset, ""] = Unsearched(dataset, error.message)
            self._unknown_files(write, dataset, None, f"its input {dataset} cannot be searched")
            return
        self.source_keys[dataset] = declared_keys([part.relation for part in parts], load_config(Path.cwd()).keys).get(
            dataset, ()
        )
        for part in parts:
            own = replace(part, rows=tuple(row for row in part.rows if row.place not in self.chain.owners))
            self.sources.setdefault(dataset, []).append(own)
            self._drops.update(own.drops())
            self._reached.update(own.drops())

    def _unknown_files(self, write: OpenedWrite | ChainLink, dataset: str, uri: str | None, why: str) -> None:
        """Note that it is not known what becomes of an input's files: of one, or of all."""
        for link in self.chain.reading():
            own = link.reads if link.run.run == write.run.run else ()
            files = [file for leaf in own if leaf.dataset == dataset for file in leaf.files]
            for place in (place_of(file) for file in files if uri in (None, file.uri)):
                self._unknown[place] = why
                self._reached.add(place)

    # ---- outputs ------------------------------------------------------------------------------------------------

    def _is_cut_off(self, link: ChainLink) -> bool:
        """Return whether every input stays as it is."""
        places = link.read_places()
        owners = {self.chain.owners[place] for place in places if place in self.chain.owners}
        come = any(self._corrected[name].delta.appended for name in owners if name in self._corrected)
        return not (come or any(p in self._drops or p in self._unknown or p in self._uncertain for p in places))

    def _evaluate(self, link: ChainLink, deleted: Sequence[Wanted], alone: str) -> None:
        try:
            write = self._writes.pop(link.run.run, None) or open_write(self.store, self.commit, link.run)
            outcome = None if write.output is None else self._over_corrections(link, write, deleted, alone)
        except (Unevaluated, EngineError, EvidenceError, UsageError) as error:
            why = error.message if isinstance(error, GovtoolError) else str(error)
            self._lost(link, why, deleted)
            return
        if outcome is None:
            for place in link.written_places():
                self._unknown[place] = f"{link.output} was written again, or is gone"
            how = "is gone, or was written again since" if link.written is not None else "lies in unknown files"
            self._beyond(link.output, f"what {link.run.run} wrote {how}")
            return
        assert outcome.corrected is not None
        self._corrected[link.run.run] = outcome.corrected
        delta = outcome.corrected.delta
        self._drops.update({place: rows for place, rows in delta.drops.items() if rows})
        for place in delta.places():
            if not outcome.corrected.writable:
                self._unknown[place] = f"{link.output} cannot be evaluated again"
            elif outcome.uncertain:
                self._uncertain[place] = link.output
        self.outputs.append(self._sized(outcome))

    def _lost(self, link: ChainLink, why: str, deleted: Sequence[Wanted]) -> None:
        for place in link.written_places():
            self._unknown[place] = f"what becomes of {link.output} is not known"
        self.outputs.append(self._sized(ErasedOutput(link, unknown=why, deleted=tuple(deleted))))

    def _over_corrections(
        self, link: ChainLink, write: OpenedWrite, deleted: Sequence[Wanted], alone: str
    ) -> ErasedOutput:
        """A write whose output is still there, over its corrected inputs.

        Raises:
            Unevaluated: It cannot be evaluated.
        """
        for place in link.read_places():
            if place in self._unknown:
                raise Unevaluated(self._unknown[place])
        if write.lineage.refused:
            first = write.lineage.refused[0]
            raise Unevaluated(f"{first.file} {first.reason} since the run read it")
        write = self._readable(write)
        doubts = dict.fromkeys(self._uncertain[place] for place in link.read_places() if place in self._uncertain)
        tokens = tuple(row.token for row in written_rows(write, deleted).rows) if deleted else ()
        assert write.output is not None
        key = declared_keys([write.output], load_config(Path.cwd()).keys).get(write.output.dataset, ())
        found = corrected_output(write, self._corrections(write), deleted, key, self._changing(write))
        inherited = [f"rows of its input {name} are not certain" for name in doubts]
        reasons = (*inherited, *([alone] if alone else ()), *found.uncertain)
        if doubts or alone:
            found = replace(found, doubtful=None)
        return ErasedOutput(link, found, tokens=tokens, uncertain=reasons, deleted=tuple(deleted))

    def _readable(self, write: OpenedWrite) -> OpenedWrite:
        """A write whose output is read as it was written: options of a writer are not recorded.

        They are those with which another run read the files, or with which the plan gives the written rows again.

        Raises:
            Unevaluated: There are none.
        """
        output = write.output
        assert output is not None
        if output.format == "parquet":
            return write
        places = {place_of(file) for file in output.files}
        read = [leaf for link in self.chain.links for leaf in link.reads if {place_of(f) for f in leaf.files} & places]
        for options in dict.fromkeys((*(leaf.options for leaf in read), (), (("header", "true"),))):
            own = replace(output, options=options)
            found = replace(write, output=own, lineage=replace(write.lineage, written=own))
            try:
                if found.verified():
                    return found
            except EngineError:
                continue
        raise Unevaluated(f"the plan does not give the rows of {output.dataset} again as {output.format} has them")

    def _corrections(self, write: OpenedWrite) -> Corrections:
        """The corrections of a plan's inputs.

        Raises:
            Unevaluated: It read only a part of an output, and where new rows of that belong is not known.
        """
        leaves = {}
        for key, leaf in {input_key(leaf): leaf for leaf in plan_leaves(write)}.items():
            found = self._correction(write, leaf)
            if found.gone is not None or found.added is not None:
                leaves[key] = found
        only_less = all(each.added is None for each in leaves.values())
        # What follows a change by a trace of rows is open to exclusions alone.
        part = Exclusion("corrected") if only_less else Replacement("corrected", (), ())
        return Corrections(write.lineage, (part,), leaves=leaves)

    def _changing(self, write: OpenedWrite) -> frozenset[int]:
        """The ids of columns of a write's inputs in which rows change, and stay the rows that they are."""
        found: set[int] = set()
        for leaf in plan_leaves(write):
            owners = {self.chain.owners[place] for place in _places(leaf) if place in self.chain.owners}
            made = [self._corrected[owner] for owner in owners if owner in self._corrected]
            names = {name for each in made for name in each.changing()}
            found.update(column.id for column in leaf.columns if column.name in names)
        return frozenset(found)

    def _correction(self, write: OpenedWrite, leaf: Relation) -> LeafCorrection:
        return LeafCorrection.of(write.lineage, leaf, self._drops, self._added(leaf))

    def _added(self, leaf: Relation) -> File | None:
        """The rows that come into the files of a leaf, as a file."""
        tables = self._arriving(leaf)
        if not tables:
            return None
        import pyarrow as pa

        self._files += 1
        table = pa.concat_tables(tables, promote_options="default")
        return table_file(table, self.folder / f"{self._files}.parquet")

    def _arriving(self, leaf: Relation) -> list[Any]:
        """The rows that come into the files of a leaf, as tables."""
        places = {place_of(file) for file in leaf.files}
        owners = dict.fromkeys(self.chain.owners[place] for place in places if place in self.chain.owners)
        tables = []
        for name in owners:
            delta = self._corrected[name].delta if name in self._corrected else None
            rows = delta.arriving() if delta is not None else []
            if delta is not None and rows:
                assert delta.table is not None
                chosen = rows if delta.places() <= places else _in_folders(delta, rows, places)
                tables += [delta.table.take(chosen)] if chosen else []
        return tables

    # ---- what was found -----------------------------------------------------------------------------------------

    def _beyond(self, what: str, why: str) -> None:
        self.not_reached.setdefault((what, why), Unsearched(what, why))

    def _sized(self, outcome: ErasedOutput) -> ErasedOutput:
        """With the numbers of rows of its output and its inputs, where they cost nothing."""
        link = outcome.link
        counts = [file_rows(leaf) for leaf in link.reads]
        read = None if None in counts else sum(count or 0 for count in counts)
        return replace(outcome, rows=None if link.written is None else file_rows(link.written), read=read)


def _places(relation: Relation) -> set[Place]:
    return {place_of(file) for file in relation.files}


def _in_folders(delta: DatasetDelta, rows: Sequence[int], places: set[Place]) -> list[int]:
    """The rows that come into files of whole partition folders.

    Raises:
        Unevaluated: The files are not those of whole folders.
    """
    relation = delta.relation
    read = {file.partition for file in relation.files if place_of(file) in places}
    partly = {file.partition for file in relation.files if place_of(file) not in places}
    if not relation.partitioned or read & partly:
        raise Unevaluated(f"it read a part of the files of {relation.dataset}: where new rows belong is not known")
    assert delta.table is not None
    columns = [delta.table.column(name).to_pylist() for name in relation.partitioned]
    return [row for row in rows if tuple(column[row] for column in columns) in read]
