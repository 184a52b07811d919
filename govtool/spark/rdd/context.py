"""The context of a tracked RDD program."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from govtool.errors import EvidenceError, UnknownNameError
from govtool.spark.rdd import checks, saved, sources, worker
from govtool.spark.rdd.lineage_rdd import LineageRDD, call_site
from govtool.spark.rdd.log import ProgramLog, RddNode, RecordedResult
from govtool.spark.rdd.operators import OPERATORS, SOURCE, Kind, RddOperator, itself
from govtool.spark.rdd.position import LineagePosition, RddPlace

MAX_DIGESTED = 2_000
"""Values, and hundreds of characters, of which ``collect()`` notes a digest; of more records only the number."""
_SHIPPED = ("worker", "operators", "eager")
"""Modules whose functions run in tasks: executors need no govtool."""


def lineage_context(sc: Any) -> LineageContext:
    """Return a context whose RDDs are tracked.

    Args:
        sc: A ``SparkContext`` or a ``SparkSession``.
    """
    from pyspark import cloudpickle

    register: Any = cloudpickle.register_pickle_by_value
    for name in _SHIPPED:
        register(importlib.import_module(f"govtool.spark.rdd.{name}"))
    return LineageContext(getattr(sc, "sparkContext", sc))


class LineageContext:
    """A ``SparkContext`` that makes tracked RDDs, and remembers what was written.

    Methods that are not here are those of the ``SparkContext``; RDDs that they return are tracked from there on.
    """

    def __init__(self, sc: Any) -> None:
        """Wrap a ``SparkContext``."""
        self.spark_context = sc
        self._log = ProgramLog()
        self._lost: dict[str, str] = {}

    def textFile(
        self,
        name: str,
        minPartitions: int | None = None,
        use_unicode: bool = True,
    ) -> LineageRDD:
        """Return the lines of text files."""
        rdd = self.spark_context.textFile(name, minPartitions, use_unicode)
        return self._lines(name, rdd, minPartitions, use_unicode)

    def text_files(self, name: str, files: list[str], minimum: int, unicode: bool) -> LineageRDD:
        """Return the lines of some of the files of a path, which may be none."""
        if not files:
            return self._lines(name, self.spark_context.parallelize([], 1), minimum, unicode)
        return self._lines(name, self.spark_context.textFile(",".join(files), minimum, unicode), minimum, unicode)

    def _lines(self, name: str, rdd: Any, minimum: int | None, unicode: bool) -> LineageRDD:
        least = self.spark_context.defaultMinPartitions if minimum is None else minimum
        return self._source("textFile", rdd, name, {"path": name, "unicode": unicode, "minimum": least})

    def parallelize(self, c: Any, numSlices: int | None = None) -> LineageRDD:
        """Return the records of a collection."""
        records = c if hasattr(c, "__len__") else list(c)
        details = {"records": saved.records_text(records)}  # now: the program may change them later
        return self._source("parallelize", self.spark_context.parallelize(records, numSlices), "", details)

    def union(self, rdds: list[Any]) -> LineageRDD:
        """Return the union of RDDs, tracked or not."""
        nodes = tuple(map(self.node_of, rdds))
        rdd = self.spark_context.union([node.rdd for node in nodes])
        apply = lambda *parents: self.spark_context.union(list(parents))  # noqa: E731
        return self.wrap(RddNode("union", OPERATORS["union"], nodes, rdd, {}, apply, f"union at {call_site()}"))

    def track(self, rdd: Any, name: str = "") -> LineageRDD:
        """Return an RDD of Spark as a tracked source: traces end at its records."""
        return self._source("track", rdd, name or repr(rdd))

    def get_lineage(self, path: str) -> LineagePosition:
        """Return the position at the lines of files that ``saveAsTextFile`` wrote in this program.

        Raises:
            UnknownNameError: Nothing was written there.
            EvidenceError: A function of the program that wrote it was not found again.
        """
        node = self._log.outputs.get(path)
        if node is None and path in self._lost:
            raise EvidenceError(self._lost[path], code="evidence.program-lost", location=path, hint=saved.EAGER)
        if node is None:
            raise UnknownNameError(
                f"no tracked RDD was written to {path}",
                code="usage.unknown-output",
                nearest=tuple(sorted(self._log.outputs))[:5],
                hint="call saveAsTextFile on an RDD of this lineage context first",
            )
        return self.position(node)

    def save(self, path: str | Path) -> None:
        """Save the operators behind all files that were written, so that a new process can trace them.

        Functions are saved as digests of their source, records that the driver held as they are, up to a bound.
        """
        with checks.own_jobs():
            Path(path).write_text(saved.encode(self._log.outputs), "utf-8")

    def load(self, path: str | Path, files: Iterable[str | Path]) -> list[str]:
        """Load what `save` wrote, and return the paths that can be traced.

        Args:
            path: The saved log.
            files: The user's own Python files, in which functions are looked for. They are not run.

        Raises:
            FormatError: It is no such log.
        """
        text = Path(path).read_text("utf-8")
        outputs, self._lost = saved.decode(text, self, [Path(file) for file in files])
        for written, node in outputs.items():
            self._log.wrote(written, node)
        return sorted(outputs)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the ``SparkContext``; RDDs that its methods return are tracked."""
        if name.startswith("__"):
            raise AttributeError(name)
        attribute = getattr(self.spark_context, name)
        if not callable(attribute):
            return attribute

        def called(*args: Any, **named: Any) -> Any:
            from pyspark import RDD

            result = attribute(*args, **named)
            return self._source(name, result, "") if isinstance(result, RDD) else result

        return called

    # ---- for LineageRDD -----------------------------------------------------------------------------------------

    def apply(self, name: str, parents: list[RddNode], arguments: dict[str, Any]) -> RddNode:
        """Return the node of a tracked method on other nodes."""
        first, *others = map(self.wrap, parents)
        if name == "union":
            return self.union([first, *others])._node
        if name == "saveAsTextFile":
            return first.as_text_lines()
        method = first.mark if name == "mark" else getattr(first, name)
        tracked: LineageRDD = method(*others, **arguments)
        return tracked._node

    def taken(self, node: RddNode, count: int) -> RddNode:
        """Return the node of the first records, as ``take`` gave them."""

        def apply(rdd: Any) -> Any:
            return self.spark_context.parallelize(rdd.take(count), 1)

        operator = RddOperator(Kind.ORDER, result_key=itself)
        label = f"the first {count} of {node.label}"
        return RddNode("take", operator, (node,), apply(node.rdd), {"num": count}, apply, label)

    def wrap(self, node: RddNode) -> LineageRDD:
        """Return a node as a tracked RDD."""
        return LineageRDD(self, node)

    def position(self, *nodes: RddNode) -> LineagePosition:
        """Return the position at all records of some nodes."""
        return LineagePosition(self._log, lambda: (list(map(RddPlace, nodes)), nodes))

    def position_of(self, rows: list[tuple[RddNode, Any]]) -> LineagePosition:
        """Return the position at given rows of some nodes."""
        nodes = tuple(node for node, _ in rows)
        return LineagePosition(self._log, lambda: ([RddPlace(*each) for each in rows], nodes))

    def node_of(self, rdd: Any) -> RddNode:
        """Return the node of an RDD; an RDD that is not tracked becomes a source."""
        if isinstance(rdd, LineageRDD):
            return rdd._node
        return self.track(rdd.rdd if isinstance(rdd, LineagePosition) else rdd)._node

    def acted(self, node: RddNode) -> None:
        """Note that an action ran."""
        self._log.add(node, None)

    def collected(self, node: RddNode, records: list[Any]) -> RecordedResult:
        """Note what ``collect()`` returned."""
        digest = worker.digest(records)[1] if worker.is_small(records, MAX_DIGESTED) else None
        found = RecordedResult("collect", len(records), digest)
        self._log.add(node, found)
        return found

    def counted(self, node: RddNode, count: int) -> RecordedResult:
        """Note what ``count()`` returned."""
        found = RecordedResult("count", count)
        self._log.add(node, found)
        return found

    def result(self, node: RddNode) -> None:
        """Note a node of a stored program as its result."""
        self._log.wrote("", node)

    def wrote(self, path: str, node: RddNode) -> None:
        """Note which files were written."""
        node.details["written"] = path
        node.details["written_files"] = sources.identities(self.spark_context, path)
        self._log.wrote(path, node)

    def _source(self, method: str, rdd: Any, name: str, details: dict[str, Any] | None = None) -> LineageRDD:
        label = name or f"{method} at {call_site()}"
        return self.wrap(RddNode(method, SOURCE, (), rdd, {}, None, label, details or {}))
