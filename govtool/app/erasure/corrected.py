"""Corrected copies of all datasets that an erasure changes, each verified before the next one is written."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from govtool.answers.row_erasure import DatasetErasure, Unsearched
from govtool.app.datasets.places import local_place
from govtool.app.erasure.copies import CopiedFile, can_edit, relative_paths, write_copy
from govtool.app.erasure.corrections import Corrections, LeafCorrection, same_names
from govtool.app.erasure.deltas import DatasetDelta, file_rows, table_file
from govtool.app.erasure.found import ErasedOutput, RowErasure
from govtool.app.erasure.keys import Wanted, meets_any
from govtool.app.erasure.partitions import ErasedPartitions, PartitionFiles, erased_partitions, remove_partitions
from govtool.app.erasure.report import PlannedErasure
from govtool.app.records.engines import engines
from govtool.app.records.opened import OpenedWrite
from govtool.app.records.opening import open_write
from govtool.errors import EngineError, EvidenceError
from govtool.records.cells import key_text
from govtool.records.execute.compare import same_rows
from govtool.records.execute.places import Place, place_of
from govtool.records.lake.files import TABLES
from govtool.records.leaves import with_relations
from govtool.records.plan.expressions import Call, Literal
from govtool.records.plan.nodes import File, Filter, Project, Relation, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN
from govtool.records.replay.changes import Exclusion
from govtool.records.replay.compare import whole_plan
from govtool.records.trace.back import count_rows
from govtool.records.trace.forward import input_key
from govtool.records.trace.segment import alike, unique
from govtool.redaction import clean_failure

if TYPE_CHECKING:
    from govtool.records.lineage import Lineage
    from govtool.store import Commit, Reader


@dataclass(frozen=True, slots=True)
class CorrectedDataset:
    """A dataset with its corrected copy, or the reason why there is none.

    Attributes:
        planned: What the plan has of it.
        folder: The name of its folder in the target; empty: not written.
        files: Its files.
        rows_before: How many rows the originals have.
        rows_after: How many rows the copy has.
        verified: ``replayed``: a run over the corrected inputs gives these rows. ``compared``: the copy has the rows of
            the plan, which a run might decide otherwise. ``searched``: a source without the subject's rows.
        keys: Columns with the values that the subject's rows have there, as text; personal data.
        others: How many files lie in its folder that no recorded run wrote.
        erased: Partitions that were left without rows, and are not in the copy.
        why: Why it was not written.
    """

    planned: DatasetErasure
    folder: str = ""
    files: tuple[CopiedFile, ...] = ()
    rows_before: int = 0
    rows_after: int = 0
    verified: str = ""
    keys: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), repr=False)
    others: int = 0
    erased: ErasedPartitions = field(default_factory=ErasedPartitions)
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Part:
    """The files of one write, or of a source."""

    delta: DatasetDelta
    write: OpenedWrite
    outcome: ErasedOutput | None = None


@dataclass(frozen=True, slots=True)
class _DatasetCopy:
    """The copy of a dataset before it is verified: its folder, and the files of each part."""

    planned: DatasetErasure
    name: str
    parts: tuple[tuple[_Part, list[CopiedFile]], ...]


def corrected_datasets(
    store: Reader, commit: Commit, planned: PlannedErasure, folder: Path, name: Callable[[str], str]
) -> list[CorrectedDataset]:
    """Write and verify a corrected copy of every dataset that changes.

    Args:
        store: The store.
        commit: Plans are those of this commit.
        planned: The erasure.
        folder: The target.
        name: Gives a dataset the name of its folder.

    Raises:
        EvidenceError: A copy is not what a replay gives (``evidence.not-reproduced``).
        EngineError: No engine evaluates the plans.
    """
    return _Copies(store, commit, planned, folder, name).written()


class _Copies:
    """The copies in progress: written files, by the original files."""

    def __init__(
        self, store: Reader, commit: Commit, planned: PlannedErasure, folder: Path, name: Callable[[str], str]
    ) -> None:
        self._store, self._commit, self._planned = store, commit, planned
        self._found: RowErasure = planned.found
        self._folder, self._name = folder, name
        self._scratch = folder / ".scratch"
        self._copied: dict[Place, CopiedFile] = {}
        self._fresh: list[tuple[DatasetDelta, CopiedFile]] = []
        self._anew: list[tuple[DatasetDelta, tuple[CopiedFile, ...]]] = []

    def written(self) -> list[CorrectedDataset]:
        """Every dataset of the plan that changes, in its order."""
        self._scratch.mkdir()
        try:
            changing = [each for each in self._planned.answer.datasets if each.changes or each.unknown]
            # All copies come first: runs of two datasets may have read each other's, one after another.
            copies = [self._copy_of(each) if each.writable and each.changes else each for each in changing]
            found = [self._verified(each) if isinstance(each, _DatasetCopy) else _without_copy(each) for each in copies]
            # At last: what reads a partition without rows is verified over it, too.
            return [self._without_partitions(each) for each in found if each.folder or each.why]
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _copy_of(self, planned: DatasetErasure) -> _DatasetCopy:
        name = self._name(planned.dataset)
        target = self._folder / name
        target.mkdir(mode=0o700)
        return _DatasetCopy(planned, name, tuple((part, self._copy(part, target)) for part in self._parts(planned)))

    def _verified(self, copy: _DatasetCopy) -> CorrectedDataset:
        parts = [part for part, _ in copy.parts]
        files = [file for _, made in copy.parts for file in made]
        verified = [self._verify(part, made) for part, made in copy.parts]
        before = sum(count_rows(part.write.executor, part.delta.relation) for part in parts)
        owned = list(self._own(parts, files))
        after = sum(_rows(part, own) for part, own in owned)
        every = [PartitionFiles(part.delta.relation, own, partial(_rows, part)) for part, own in owned]
        return CorrectedDataset(
            copy.planned,
            copy.name,
            tuple(files),
            before,
            after,
            "compared" if "compared" in verified else verified[0],
            self._keys(copy.planned.dataset),
            _others(parts, copy.planned),
            erased_partitions(every),
        )

    def _without_partitions(self, found: CorrectedDataset) -> CorrectedDataset:
        if not found.erased.folders:
            return found
        return replace(found, files=remove_partitions(found.erased, found.files, self._folder / found.folder))

    def _own(self, parts: list[_Part], files: list[CopiedFile]) -> Iterable[tuple[_Part, list[CopiedFile]]]:
        for part in parts:
            places = part.delta.places()
            whole = next((made for delta, made in self._anew if delta is part.delta), None)
            fresh = [file for delta, file in self._fresh if delta is part.delta]
            known = [f for f in files if f.original is not None and place_of(f.original) in places]
            yield part, list(whole) if whole is not None else [*known, *fresh]

    def _parts(self, planned: DatasetErasure) -> list[_Part]:
        """The files of a dataset: of the writes that change, and of others that left files in it."""
        if planned.source:
            source = next(each for each in self._found.sources if each.dataset == planned.dataset)
            delta = source.delta()
            links = [
                link for link in self._planned.chain.reading() if any(r.dataset == source.dataset for r in link.reads)
            ]
            return [_Part(delta, open_write(self._store, self._commit, links[0].run))]
        outcomes = {each.link.run.run: each for each in self._found.outputs}
        parts = []
        for link in self._planned.chain.links:
            if link.output != planned.dataset:
                continue
            write = open_write(self._store, self._commit, link.run)
            outcome = outcomes.get(link.run.run)
            if outcome is not None and outcome.corrected is not None:
                parts.append(_Part(outcome.corrected.delta, write, outcome))
            elif write.output is not None:
                parts.append(_Part(DatasetDelta(write.output), write, outcome))
        return parts

    # ---- files --------------------------------------------------------------------------------------------------

    def _copy(self, part: _Part, target: Path) -> list[CopiedFile]:
        if part.delta.relation.format in TABLES:  # their files hold rows that were deleted, or other names of columns
            raise EngineError(
                "files of which some rows are deleted, or whose columns were renamed, are not copied",
                code="engine.format",
            )
        if not part.delta or can_edit(part.delta):
            made = write_copy(part.delta, target)
            for file in made:
                if file.original is not None:
                    self._copied[place_of(file.original)] = file
                else:
                    self._fresh.append((part.delta, file))
            return made
        made = self._by_spark(part, target)
        self._anew.append((part.delta, tuple(made)))
        return made

    def _by_spark(self, part: _Part, target: Path) -> list[CopiedFile]:
        """Files of a format that only Spark writes, written anew with the options that they are read with."""
        relation = part.delta.relation
        executor: Any = engines(part.write.plan.session)[1].start()
        lineage = replace(part.write.lineage, executor=executor)
        frame = executor.frame(self._content(part, lineage), [column.name for column in relation.columns])
        place = self._scratch / "spark"
        writer = frame.write.format(relation.format).options(**dict(relation.options))
        if relation.partitioned:
            writer = writer.partitionBy(*relation.partitioned)
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            writer.mode("overwrite").save(str(place))
        except (PySparkException, Py4JError) as error:  # a format without a writer, an option, a type it cannot hold
            why = f"Spark cannot write {relation.dataset} again: {clean_failure(error)[:200]}"
            raise EngineError(why, code="engine.spark") from error
        found = []
        for path in sorted(place.rglob("*")):
            inner = path.relative_to(place)
            if path.is_file() and not any(name.startswith(("_", ".")) for name in inner.parts):
                to = target / inner
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(path, to)
                found.append(CopiedFile(to, None, _partition(inner, relation), True))
        shutil.rmtree(place, ignore_errors=True)
        return found

    def _content(self, part: _Part, lineage: Lineage) -> Node:
        """The rows that a copy has to have."""
        delta = part.delta
        added = None
        rows = delta.arriving()
        if rows and delta.table is not None:
            added = table_file(delta.table.take(rows), self._scratch / "added.parquet")
        relation = _fresh(lineage, delta.relation)
        correction = LeafCorrection.of(lineage, relation, delta.drops, added)
        changes = Corrections(lineage, (Exclusion("corrected"),), leaves={input_key(relation): correction})
        return changes.applied(relation)

    # ---- verification -------------------------------------------------------------------------------------------

    def _verify(self, part: _Part, made: list[CopiedFile]) -> str:
        """How a copy was verified.

        Raises:
            EvidenceError: It has not the rows that it has to have.
        """
        own = _fresh(part.write.lineage, copied_relation(part.delta, made))
        outcome = part.outcome
        if outcome is not None and not outcome.uncertain:
            again, columns = self._replayed(part, outcome.deleted)
            self._require(part, again, _columns(own, columns), "a run over the corrected inputs does not give its rows")
            return "replayed"
        self._require(part, self._content(part, part.write.lineage), own, "its copy has other rows")
        return "searched" if outcome is None and part.delta else "compared"

    def _require(self, part: _Part, wanted: Node, copy: Node, problem: str) -> None:
        executor = part.write.executor
        if not same_rows(executor.arrow(wanted), executor.arrow(copy)):
            raise EvidenceError(
                f"{part.delta.relation.dataset}: {problem}; nothing was written",
                code="evidence.not-reproduced",
            )

    def _replayed(self, part: _Part, deleted: tuple[Wanted, ...]) -> tuple[Node, list[int]]:
        """A write's plan over the corrected files, and the places of the columns that it evaluates."""
        lineage = part.write.lineage
        columns = unique(lineage.stage.segment.visible)
        whole = Project(whole_plan(lineage, lineage.stage), same_names(columns))
        node: Node = with_relations(whole, self._corrected_leaf)
        if deleted:
            named = [
                replace(column, name=own.name) for column, own in zip(columns, part.delta.relation.columns, strict=True)
            ]
            going = alike(meets_any(named, deleted), Literal(True, BOOLEAN))
            node = Filter(node, Call("not", (going,), BOOLEAN))
        places = [n for n, column in enumerate(columns) if column.id not in lineage.blank]
        return _columns(node, places), places

    def _corrected_leaf(self, leaf: Relation) -> Node:
        """A leaf that reads the corrected files in place of the originals."""
        places = {place_of(file) for file in leaf.files}
        rewritten = [(delta.places(), made) for delta, made in self._anew if delta.places() & places]
        gone = {place for own, _ in rewritten for place in own}
        # A corrected file stands for all that it was made of: a run that read some of these has no such input.
        if any(not own <= places for own, _ in rewritten):
            raise EvidenceError(f"a part of the files of {leaf.dataset} is read", code="evidence.not-reproduced")
        files = [_file(self._copied.get(place_of(file)), file) for file in leaf.files if place_of(file) not in gone]
        files += [_file(file, None) for _, made in rewritten for file in made]
        for delta, file in self._fresh:
            partitions = {each.partition for each in delta.relation.files if place_of(each) in places}
            if delta.places() <= places or file.partition in partitions:
                files.append(_file(file, None))
        return replace(leaf, files=tuple(replace(file, ordinal=n) for n, file in enumerate(files)), version="")

    def _keys(self, dataset: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The columns that were searched, with the values that were found there."""
        wanted = self._planned.keys.wanted.get(dataset, ())
        found: dict[str, dict[str, None]] = {}
        for each in wanted:
            found.setdefault(each.column, {})[each.value] = None
        for source in self._found.sources:
            if source.dataset == dataset:  # 042 finds the number 42
                names = [column.name for column in source.delta().relation.columns]
                given = {each.value for each in wanted}
                for row in source.rows().values():
                    for column in found:
                        text = key_text(row.cells[names.index(column)])
                        if len(found) == 1 or text in given:
                            found[column][text] = None
        return tuple((column, tuple(values)) for column, values in found.items())


def _without_copy(planned: DatasetErasure) -> CorrectedDataset:
    """A dataset that is not written: it cannot be, or nothing of it is known to change."""
    why = "" if planned.writable else "; ".join(dict.fromkeys(each.why for each in planned.unknown))
    return CorrectedDataset(planned, why=why)


def _fresh(lineage: Lineage, relation: Relation) -> Relation:
    """A leaf under ids of a plan's own."""
    return replace(relation, columns=tuple(lineage.ids.attribute(each.name, each.type) for each in relation.columns))


def copied_relation(delta: DatasetDelta, files: Iterable[CopiedFile]) -> Relation:
    """The files of a copy as a leaf, under the columns of the original."""
    listed = sorted((_file(each, None) for each in files), key=lambda file: file.uri)
    return replace(delta.relation, files=tuple(replace(f, ordinal=n) for n, f in enumerate(listed)), version="")


def _rows(part: _Part, files: Sequence[CopiedFile]) -> int:
    """How many rows some files of a copy have."""
    relation = copied_relation(part.delta, files)
    known = file_rows(relation)
    return count_rows(part.write.executor, relation) if known is None else known


def _file(copied: CopiedFile | None, original: File | None) -> File:
    if copied is None:
        assert original is not None
        return original
    facts = copied.path.stat()
    return File(0, copied.path.as_uri(), facts.st_size, facts.st_mtime_ns // 1_000_000, copied.partition)


def _columns(node: Node, places: list[int]) -> Node:
    """Some columns of a plan, by position."""
    every = outputs(node)
    return Project(node, same_names(tuple(every[n] for n in places)))


def _partition(path: Path, relation: Relation) -> tuple[Any, ...]:
    """The partition values in a path, in the types of the columns."""
    found = dict(part.partition("=")[::2] for part in path.parts[:-1])
    kinds = {column.name: column.type for column in relation.columns}
    values: list[Any] = []
    for name in relation.partitioned:
        text = unquote(found[name])
        whole = getattr(kinds[name], "name", "") in ("integer", "long")
        values.append(None if text == "__HIVE_DEFAULT_PARTITION__" else int(text) if whole else text)
    return tuple(values)


def _others(parts: list[_Part], planned: DatasetErasure) -> int:
    """How many data files lie in the folder of a dataset that are no part of the copy."""
    known = {file.uri for part in parts for file in part.delta.relation.files}
    root = local_place(planned.dataset) or relative_paths(parts[0].delta.relation.files)[0]
    if root is None or not root.is_dir():
        return 0
    return sum(
        path.is_file()
        and path.as_uri() not in known
        and not any(name.startswith(("_", ".")) for name in path.relative_to(root).parts)
        for path in root.rglob("*")
    )


def left_over(datasets: Iterable[CorrectedDataset]) -> tuple[Unsearched, ...]:
    """Files beside those of the recorded runs."""
    why = "in its folder that no run of the plan wrote or read: neither searched nor copied"
    return tuple(
        Unsearched(each.planned.dataset, f"{each.others} file{'s' if each.others > 1 else ''} {why}")
        for each in datasets
        if each.others
    )
