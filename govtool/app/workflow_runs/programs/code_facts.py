"""What is known of a program's code before anything is followed: its functions, its imports, which of them write."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from govtool.app.workflow_runs.programs.code_words import (
    BY_ROWS,
    CHANGES,
    CHECKS,
    ENDS,
    HARMLESS,
    PANDAS_ON_SPARK,
    PROPERTIES,
    READS,
    VIEWS,
    WRITES,
    WRITES_OF_RDDS,
    WRITES_TO,
    arguments,
    called,
    chain,
    defined,
    has_values,
    hides_errors,
    named,
    root,
)


@dataclass(slots=True)
class CodeFacts:
    """A program's code.

    Attributes:
        trees: Its files.
        nodes: All of their nodes.
        functions: Its functions by name, methods among them.
        called: The ids of nodes that stand for what is called.
        foreign: Names of other packages.
        modules: Names of modules that have functions called like actions: ``functions.count``, ``functools.reduce``.
        constants: The constants that a name is set to.
        assigned: How often a name is set.
        loose: Functions that are not only called by their names: handed on, kept, decorated with a function of the
            program. Who calls them, and when, is not known.
        writers: Functions that write, end the program or call such a function.
        properties: Functions that are called without parentheses.
        hiding: Names of context managers that may hide an error.
        is_by_rows: Names of columns are made of rows somewhere.
        has_delta: Tables of Delta Lake are changed by methods.
        is_closed: Something in it cannot be followed at all.
    """

    trees: Sequence[ast.Module]
    nodes: list[ast.AST]
    functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]
    called: frozenset[int]
    foreign: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    constants: dict[str, list[object]] = field(default_factory=dict)
    assigned: Counter[str] = field(default_factory=Counter)
    loose: set[str] = field(default_factory=set)
    writers: set[str] = field(default_factory=set)
    properties: set[str] = field(default_factory=set)
    hiding: set[str] = field(default_factory=lambda: {"suppress"})
    is_by_rows: bool = False
    has_delta: bool = False
    is_closed: bool = False

    @classmethod
    def of(cls, trees: Sequence[ast.Module]) -> CodeFacts:
        """Read the facts off the trees of a program's files."""
        nodes = [node for tree in trees for node in ast.walk(tree)]
        facts = cls(trees, nodes, defined(trees), frozenset(id(n.func) for n in nodes if isinstance(n, ast.Call)))
        for node in nodes:
            facts._declare(node)
        for node in nodes:
            facts._use(node)
        facts._find_writers()
        return facts

    def is_loose(self, node: ast.AST) -> bool:
        """Whether a node names a function without calling it."""
        if not isinstance(node, (ast.Name, ast.Attribute)) or id(node) in self.called:
            return False
        return isinstance(node.ctx, ast.Load) and named(node) in self.functions

    def handed(self, call: ast.Call) -> list[str]:
        """The functions of the program that a call gets, and may call."""
        return [named(each) for each in arguments(call) if self.is_loose(each)]

    def is_of_module(self, node: ast.expr) -> bool:
        """Whether a chain of calls begins with a module that is known."""
        return root(node) in self.modules

    def is_write(self, call: ast.Call) -> bool:
        """Whether a call may write, whatever its arguments. Of ``sql``, its text decides."""
        name, names = called(call), set(chain(call.func))
        if name in WRITES_TO and "writeTo" in names:
            return True
        if name in CHANGES and (self.has_delta or "mergeInto" in names):
            return True
        if name == "getattr" and call.args and "write" in chain(call.args[0]):
            return True
        is_method = isinstance(call.func, ast.Attribute)
        return is_method and (name in WRITES_OF_RDDS or (name in WRITES and not names & READS))

    def is_held_write(self, node: ast.AST) -> bool:
        """Whether a method that writes is kept, and called under another name: ``save = df.write.parquet``."""
        if not isinstance(node, ast.Attribute) or id(node) in self.called or node.attr not in WRITES:
            return False
        return "write" in chain(node)

    def may_write(self, node: ast.AST) -> bool:
        """Whether a node writes, ends the program, gives names to what SQL reads, or calls or names what does."""
        if isinstance(node, ast.Call):
            name = called(node)
            does = name in self.writers or name in ENDS or name in VIEWS or name in CHECKS or name == "sql"
            return does or self.is_write(node)
        return self.is_held_write(node) or (self.is_loose(node) and named(node) in self.writers)

    def _find_writers(self) -> None:
        before = -1
        while before != len(self.writers):
            before = len(self.writers)
            for name, functions in self.functions.items():
                if any(self.may_write(node) for each in functions for node in ast.walk(each)):
                    self.writers.add(name)

    def _declare(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            self._import((each.asname or each.name.partition(".")[0], each.name) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            self._import((each.asname or each.name, f"{node.module or ''}.{each.name}") for each in node.names)
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
            is_known = package in HARMLESS or package in sys.stdlib_module_names
            (self.modules if is_known else self.foreign).add(name)
            self.has_delta = self.has_delta or package == "delta"
            self.is_closed = self.is_closed or module.startswith("pyspark.pandas")

    def _use(self, node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._decorate(node)
            if hides_errors(node):
                self.hiding.add(node.name)
        elif isinstance(node, ast.Call):
            name = called(node)
            self.is_by_rows = self.is_by_rows or name in BY_ROWS or (name == "pivot" and not has_values(node))
            self.is_closed = self.is_closed or name in PANDAS_ON_SPARK
        elif self.is_loose(node):
            self.loose.add(named(node))

    def _decorate(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        for each in node.decorator_list:
            names = {named(part) for part in ast.walk(each)}
            if names & PROPERTIES:
                self.properties.add(node.name)
            if names & self.functions.keys():
                own = (one.name for one in node.body if isinstance(one, ast.FunctionDef))
                self.loose.update([node.name] if not isinstance(node, ast.ClassDef) else own)
