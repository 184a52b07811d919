"""Which writes of a program hang on rows that it collected: whether they are done at all, or what they write.

Read off the program's own Python code. Names stand for what they are called, wherever they are, and in whatever order
statements run; so more writes are found than really hang on collected rows. A program of which a part is not known is
``UNKNOWN``: every write of it may. Not followed are errors that rows raise outside of ``try``, and files that the
driver writes and reads by itself.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

_ACTIONS: Final = frozenset(
    """collect toPandas toArrow take head first tail toLocalIterator count isEmpty collectAsMap countByKey countByValue
    countApprox takeOrdered takeSample top reduce fold aggregate treeReduce treeAggregate lookup sum max min mean
    stdev variance stats histogram approxQuantile corr cov foreach foreachPartition""".split()  # noqa: SIM905
)
"""Methods that give the driver something of rows."""
_ALWAYS: Final = frozenset({"Observation", "accumulator"})
_OF_GROUPS: Final = frozenset(["count", "first", "sum", "max", "min", "mean"])
"""Those of them that are also methods of groups, which give DataFrames; and, with arguments, functions of columns."""
_GROUPING: Final = frozenset(["groupBy", "groupby", "rollup", "cube", "pivot"])
_SHOWS: Final = frozenset({"show", "display", "pivot", "checkpoint", "localCheckpoint"})
"""Methods that collect rows and give the program none."""
_WRITES: Final = frozenset(["save", "saveAsTable", "insertInto", "parquet", "csv", "json", "orc", "text", "jdbc"])
_WRITES_TO: Final = frozenset(["create", "createOrReplace", "replace", "append", "overwrite", "overwritePartitions"])
"""Methods behind ``writeTo(TABLE)``."""
_QUERIES: Final = ("select", "with", "from", "table", "show", "describe", "explain")
_READS: Final = frozenset({"read", "readStream"})
_RUNS_TEXT: Final = frozenset({"exec", "eval", "__import__", "import_module", "run_path", "run_module", "execfile"})
_ENDS: Final = frozenset({"exit", "_exit", "abort", "quit", "stop"})
_FRAMES: Final = frozenset({"read", "table", "sql", "createDataFrame", "range", "parallelize", "textFile"})
_HARMLESS: Final = frozenset({"pyspark", "pandas", "numpy", "govtool", "builtins"})
"""Packages whose functions collect nothing without one of the methods above."""


@dataclass(frozen=True, slots=True)
class HangingWrites:
    """The writes of a program that may hang on rows which it collected.

    Attributes:
        targets: The last part of the target of each, or of the name of its table.
        is_any: Any write may be one: a target is not known, or the program may have ended early.
    """

    targets: frozenset[frozenset[str]] = frozenset()
    is_any: bool = False

    def not_among(self, datasets: Iterable[str]) -> list[str]:
        """The targets that none of some datasets has."""
        ends = [_ends(each) for each in datasets]
        return sorted(max(each, key=len) for each in self.targets if all(each.isdisjoint(end) for end in ends))

    def has(self, dataset: str) -> bool:
        """Whether a write of a dataset may be one of them."""
        return self.is_any or any(not _ends(dataset).isdisjoint(each) for each in self.targets)


UNKNOWN: Final = HangingWrites(is_any=True)


def hanging_writes(sources: Sequence[str]) -> HangingWrites:
    """The writes of a program that may hang on what it collected.

    Args:
        sources: The texts of its files, all that are its own.
    """
    try:
        trees = [ast.parse(source) for source in sources]
    except (SyntaxError, ValueError, RecursionError):
        return UNKNOWN
    try:
        return _Program(trees).writes()
    except RecursionError:
        return UNKNOWN


def _ends(name: str) -> frozenset[str]:
    """What a path or the name of a table may be known by: its last part."""
    end = name.rstrip("/").rpartition("/")[2]
    return frozenset({end} if "/" in name else {end, end.rpartition(".")[2]})


@dataclass(slots=True)
class _Program:
    trees: list[ast.Module]
    names: set[str] = field(default_factory=set)
    """Names, and attributes with a dot in front, that may hold something collected."""
    functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = field(default_factory=dict)
    under: set[str] = field(default_factory=set)
    """Functions that are called under a condition of collected rows."""
    giving: set[str] = field(default_factory=set)
    """Functions whose results are made of collected rows."""
    frames: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    """Names of other packages."""
    modules: set[str] = field(default_factory=set)
    """Names of modules that have functions called like actions: ``functions.count``, ``functools.reduce``."""
    constants: dict[str, list[object]] = field(default_factory=dict)
    assigned: Counter[str] = field(default_factory=Counter)
    targets: set[frozenset[str]] = field(default_factory=set)
    is_any: bool = False

    def writes(self) -> HangingWrites:
        """Everything, once nothing more comes to be known."""
        for node in self._nodes():
            self._declare(node)
        if not any(self._is_known(node) for node in self._nodes()):
            return UNKNOWN  # rows were collected, and the code does not show where
        before = -1
        while before != self._size():
            before = self._size()
            for tree in self.trees:
                self._block(tree.body, False, "")
        return HangingWrites(frozenset(self.targets), self.is_any)

    def _size(self) -> int:
        names = len(self.names) + len(self.under) + len(self.giving) + len(self.frames)
        return names + len(self.targets) + self.is_any

    def _nodes(self) -> Iterator[ast.AST]:
        for tree in self.trees:
            yield from ast.walk(tree)

    def _declare(self, node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Import):
            self._import((each.asname or each.name.partition(".")[0], each.name) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            self._import((each.asname or each.name, node.module or "") for each in node.names)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.constants.setdefault(target.id, []).append(node.value.value)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            self.assigned[node.id] += 1
        elif isinstance(node, ast.arg):
            self.assigned[node.arg] += 2

    def _import(self, pairs: Iterable[tuple[str, str]]) -> None:
        for name, module in pairs:
            package = module.partition(".")[0]
            is_known = package in _HARMLESS or package in sys.stdlib_module_names
            (self.modules if is_known else self.foreign).add(name)

    # ---- statements -------------------------------------------------------------------------------------------------

    def _block(self, statements: Sequence[ast.stmt], under: bool, function: str) -> bool:
        """Go through statements; whether a condition of collected rows may leave the block before its end."""
        leaves = False
        for each in statements:
            leaves = self._statement(each, under or leaves, function) or leaves
        return leaves

    def _statement(self, node: ast.stmt, under: bool, function: str) -> bool:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._block(node.body, under or node.name in self.under, node.name)
            return False
        if isinstance(node, ast.ClassDef):
            return self._block(node.body, under, function)
        self._expressions(node, under)
        if isinstance(node, (ast.If, ast.While, ast.For, ast.AsyncFor, ast.Try, ast.With, ast.AsyncWith, ast.Match)):
            return self._branches(node, under, function)
        if isinstance(node, ast.Assert):
            self.is_any = self.is_any or under or self._is_collected(node.test)
        elif isinstance(node, ast.Raise):
            self.is_any = self.is_any or under
        elif isinstance(node, ast.Return):
            if node.value is not None and (under or self._is_collected(node.value)):
                self.giving.add(function)
            return under
        else:
            self._assign(node, under)
        return under and isinstance(node, (ast.Break, ast.Continue))

    def _branches(self, node: ast.stmt, under: bool, function: str) -> bool:
        within = under or any(self._is_collected(each) for each in _conditions(node))
        self._take_targets(node, within)
        leaves = False
        for block in _blocks(node):
            leaves = self._block(block, within, function) or leaves
        if isinstance(node, ast.Try) and any(self._is_collected(each) for each in node.body):
            for handler in node.handlers:
                if not isinstance(handler.body[-1], ast.Raise):  # the run did not end there
                    leaves = self._block(handler.body, True, function) or leaves
        if leaves and _is_loop(node):
            for block in _blocks(node):  # the loop may end early: all in it is done as often as collected rows say
                self._block(block, True, function)
        return leaves and (not _is_loop(node) or any(isinstance(each, ast.Return) for each in ast.walk(node)))

    def _take_targets(self, node: ast.stmt, within: bool) -> None:
        """The names that a loop or a WITH gives values to."""
        if isinstance(node, (ast.For, ast.AsyncFor)) and within:
            self._take(node.target)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None and self._is_collected(item.context_expr):
                    self._take(item.optional_vars)

    def _assign(self, node: ast.stmt, under: bool) -> None:
        if isinstance(node, ast.Assign):
            self._set(node.targets, node.value, under)
        elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.AnnAssign) and node.value is not None):
            self._set([node.target], node.value, under)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            held = call.func.value if isinstance(call.func, ast.Attribute) else None
            if held is not None and any(self._is_collected(each) for each in _arguments(call)):
                self._take(held)  # rows.append(frame.count())

    def _set(self, targets: Sequence[ast.expr], value: ast.expr | None, under: bool) -> None:
        if under or (value is not None and self._is_collected(value)):
            for target in targets:
                self._take(target)
        if value is not None and self._has_frame(value):
            self.frames.update(each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))

    def _take(self, target: ast.expr) -> None:
        """What is assigned may hold something collected."""
        for each in ast.walk(target):
            if isinstance(each, ast.Name) and each.id not in self.foreign and each.id != "self":
                if not isinstance(target, ast.Attribute):
                    self.names.add(each.id)
            elif isinstance(each, ast.Attribute):
                self.names.add(f".{each.attr}")

    # ---- expressions ------------------------------------------------------------------------------------------------

    def _expressions(self, node: ast.stmt, under: bool) -> None:
        """Writes and calls of a statement itself, not of the statements in it."""
        for top in _own(node):
            for each in ast.walk(top):
                self._expression(each, under)

    def _expression(self, each: ast.AST, under: bool) -> None:
        if isinstance(each, ast.NamedExpr):
            self._set([each.target], each.value, under)
        elif isinstance(each, ast.comprehension) and self._is_collected(each.iter):
            self._take(each.target)
        elif isinstance(each, (ast.IfExp, ast.BoolOp)) and self._is_collected(each):
            for call in ast.walk(each):
                self._call(call, True)
        elif isinstance(each, ast.Call):
            self._call(each, under)

    def _call(self, call: ast.AST, under: bool) -> None:
        if not isinstance(call, ast.Call):
            return
        name = _called(call)
        if name in _RUNS_TEXT or (under and name in _ENDS):
            self.is_any = True
        if name in self.functions:
            if under:
                self.under.add(name)
            self._bind(call, name)
        self._hand_over(call, under)
        if self._is_write(call, name) and (under or self._is_collected(call)):
            self._written(call, name)

    def _hand_over(self, call: ast.Call, under: bool) -> None:
        """Functions that a call gets, and may call: with what it gets besides."""
        handed = [each.id for each in _arguments(call) if isinstance(each, ast.Name) and each.id in self.functions]
        is_collected = handed and any(self._is_collected(each) for each in _arguments(call))
        if is_collected or under:
            self.under.update(handed)
        if is_collected:
            functions = (function for name in handed for function in self.functions[name])
            self.names.update(each.arg for function in functions for each in function.args.args)

    def _bind(self, call: ast.Call, name: str) -> None:
        """Parameters of a function that is called with something collected."""
        for function in self.functions[name]:
            parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
            if parameters[:1] in (["self"], ["cls"]):
                del parameters[0]
            every = [*parameters, *(each.arg for each in function.args.kwonlyargs)]
            every += [each.arg for each in (function.args.vararg, function.args.kwarg) if each is not None]
            for at, value in enumerate(call.args):
                if self._is_collected(value):
                    self.names.update(parameters[at : at + 1] if not isinstance(value, ast.Starred) else every)
                    self.names.update(every[len(parameters) :] if at >= len(parameters) else ())
                if self._has_frame(value):
                    self.frames.update(parameters[at : at + 1])
            for keyword in call.keywords:
                if self._is_collected(keyword.value):
                    self.names.update([keyword.arg] if keyword.arg in every else every)
                if self._has_frame(keyword.value) and keyword.arg in every:
                    self.frames.add(keyword.arg)

    def _is_collected(self, node: ast.AST) -> bool:
        return any(self._is_source(each) for each in ast.walk(node))

    def _is_source(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.names
        if isinstance(node, ast.Attribute):
            return f".{node.attr}" in self.names
        if isinstance(node, ast.Call) and _called(node) in self.giving:
            return True
        return self._is_action(node) or self._is_foreign(node)

    def _is_action(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return False
        name, held = _called(node), getattr(node.func, "value", None)
        if name in _ALWAYS:
            return True
        if name == "getattr" and len(node.args) > 1:
            method = node.args[1]
            return method.value in _ACTIONS if isinstance(method, ast.Constant) else self._has_frame(node.args[0])
        if name not in _ACTIONS or held is None or (isinstance(held, ast.Name) and held.id in self.modules):
            return False
        is_of_group = isinstance(held, ast.Call) and _called(held) in _GROUPING
        return name not in _OF_GROUPS or not (node.args or is_of_group)

    def _is_known(self, node: ast.AST) -> bool:
        """Whether a part of the code may have collected the rows that were."""
        shows = isinstance(node, ast.Call) and _called(node) in _SHOWS
        return shows or self._is_action(node) or self._is_foreign(node)

    def _is_foreign(self, node: ast.AST) -> bool:
        """Whether a function of another package gets a DataFrame: it may collect its rows."""
        if not isinstance(node, ast.Call) or _root(node.func) not in self.foreign or _called(node) in self.functions:
            return False
        return any(self._has_frame(each) for each in _arguments(node))

    def _has_frame(self, node: ast.AST) -> bool:
        for each in ast.walk(node):
            if isinstance(each, ast.Attribute) and each.attr in _FRAMES:
                return True
            if isinstance(each, ast.Name) and each.id in self.frames:
                return True
        return False

    # ---- writes -----------------------------------------------------------------------------------------------------

    def _is_write(self, call: ast.Call, name: str) -> bool:
        chain = set(_chain(call.func))
        if name == "sql" and isinstance(call.func, ast.Attribute):
            text = self._beginning(call.args[0]) if call.args else ""
            return not text.lstrip().lower().startswith(_QUERIES)
        if name in _WRITES_TO:
            return "writeTo" in chain
        return name in _WRITES and isinstance(call.func, ast.Attribute) and not chain & _READS

    def _written(self, call: ast.Call, name: str) -> None:
        place = _target(call) if name not in _WRITES_TO else _target_of_write_to(call)
        text = None if name in ("sql", "jdbc") or place is None or self._is_collected(place) else self._text(place)
        if text:
            self.targets.add(_ends(text))
        else:
            self.is_any = True

    def _beginning(self, node: ast.expr) -> str:
        while isinstance(node, (ast.JoinedStr, ast.BinOp)) or _called_on(node) is not None:
            inner = _called_on(node) or (node.left if isinstance(node, ast.BinOp) else None)
            if isinstance(node, ast.JoinedStr):
                inner = node.values[0] if node.values else None
            if inner is None:
                break
            node = inner
        return self._text(node) or ""

    def _text(self, node: ast.expr) -> str | None:
        """The text of an expression, or its end from a slash on; None: it is not known."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            known = self.constants.get(node.id, [])
            text = known[0] if len(known) == self.assigned[node.id] == 1 else None
            return text if isinstance(text, str) else None
        end: ast.expr | None = None
        if isinstance(node, ast.JoinedStr) and node.values:
            end = node.values[-1]
        elif isinstance(node, ast.BinOp):
            end = node.right
        text = self._text(end) if isinstance(end, ast.Constant) else None
        return text if text is not None and "/" in text.rstrip("/") else None


def _conditions(node: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(node, (ast.If, ast.While)):
        yield node.test
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield node.iter
    elif isinstance(node, ast.Match):
        yield node.subject
        yield from (case.guard for case in node.cases if case.guard is not None)


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for each in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield each.body


def _is_loop(node: ast.stmt) -> bool:
    return isinstance(node, (ast.While, ast.For, ast.AsyncFor))


def _own(node: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without the statements in it."""
    for each in ast.iter_child_nodes(node):
        if not isinstance(each, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield each


def _called_on(node: ast.expr) -> ast.expr | None:
    """The text of ``"…".format(…)``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("format", "strip"):
        return node.func.value
    return None


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _arguments(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (each.value for each in call.keywords)


def _chain(node: ast.expr) -> Iterator[str]:
    """The names of a chain of calls: ``read`` and ``parquet`` of ``spark.read.parquet(…)``."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            yield node.attr
        node = node.func if isinstance(node, ast.Call) else node.value


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _target(call: ast.Call) -> ast.expr | None:
    if call.args:
        return call.args[0]
    return next((each.value for each in call.keywords if each.arg in ("path", "name", "tableName")), None)


def _target_of_write_to(call: ast.Call) -> ast.expr | None:
    node: ast.expr = call
    while isinstance(node, (ast.Attribute, ast.Call)):
        if isinstance(node, ast.Call) and _called(node) == "writeTo":
            return _target(node)
        node = node.func if isinstance(node, ast.Call) else node.value
    return None
