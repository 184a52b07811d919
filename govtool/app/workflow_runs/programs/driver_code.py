"""Which writes of a program hang on rows that it collected: whether they are done at all, or what they write.

Read off the program's own Python code. Names stand for what they are called, wherever they are, and in whatever order
statements run; so more writes are found than really hang on collected rows. A program of which a part is not known is
``UNKNOWN``: every write of it may. Not followed are errors that rows raise outside of ``try``, and files that the
driver writes and reads by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from govtool.app.workflow_runs.programs.code_facts import CodeFacts
from govtool.app.workflow_runs.programs.code_words import (
    ACTIONS,
    BARE_ACTIONS,
    CHANGES,
    CHANGES_WHAT_IT_IS_CALLED_ON,
    CHECKS,
    COLLECTING,
    COLUMNS,
    ENDS,
    FRAMES,
    GROUPING,
    OF_GROUPS,
    OF_INSTANCES,
    PLAIN,
    PROGRESS,
    QUERIES,
    RUNS_TEXT,
    SHOWS,
    UNCHANGED,
    VIEWS,
    WRITES_TO,
    arguments,
    blocks,
    called,
    called_on,
    chain,
    conditions,
    decided,
    finds_by_name,
    goes_on,
    is_loop,
    is_shown_method,
    named,
    own,
    parameters,
    root,
    target_of,
    target_of_write_to,
)


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
        return _Program(CodeFacts.of(trees)).writes()
    except RecursionError:
        return UNKNOWN


def functions_that_hang(tree: ast.Module, framed: frozenset[str]) -> frozenset[str] | None:
    """The functions whose results may hang on collected rows; None where that is not known.

    Args:
        tree: The program.
        framed: Functions that are given DataFrames.
    """
    program = _Program(CodeFacts.of([tree]))
    every = (function for name in framed for function in program.facts.functions[name])
    program.frames.update(
        each.arg for function in every for each in ast.walk(function.args) if isinstance(each, ast.arg)
    )
    found, facts = program.writes(), program.facts
    calls = (node for node in facts.nodes if isinstance(node, ast.Call))
    hands_on = any(
        isinstance(each, (ast.Name, ast.Attribute)) and root(each) in facts.foreign
        for call in calls
        for each in arguments(call)
    )  # who is given a function of another package may call it with rows
    if found is UNKNOWN or found.is_any or found.targets or facts.is_by_rows or hands_on:
        return None
    return frozenset(program.giving)


def _ends(name: str) -> frozenset[str]:
    """What a path or the name of a table may be known by: its last part."""
    end = name.rstrip("/").rpartition("/")[2]
    return frozenset({end} if "/" in name else {end, end.rpartition(".")[2]})


@dataclass(slots=True)
class _Program:
    facts: CodeFacts
    names: set[str] = field(default_factory=set)
    """Names, and attributes with a dot in front, that may hold something collected."""
    under: set[str] = field(default_factory=set)
    """Functions that are called under a condition of collected rows."""
    giving: set[str] = field(default_factory=set)
    """Functions whose results are made of collected rows."""
    touching: set[str] = field(default_factory=set)
    """Functions that have collected rows in hand, or call one that has."""
    filled: set[str] = field(default_factory=set)
    """Names of what collected rows were put into: who handed it over has them, too."""
    frames: set[str] = field(default_factory=set)
    targets: set[frozenset[str]] = field(default_factory=set)
    decides: bool = False
    """Something collected is more than shown: what calls a function that is handed on may do so because of it."""
    is_any: bool = False

    def writes(self) -> HangingWrites:
        """Everything, once nothing more comes to be known."""
        facts = self.facts
        if facts.is_closed or not any(self._is_known(node) for node in facts.nodes):
            return UNKNOWN  # rows were collected, and the code does not show where
        before = -1
        while before != self._size():
            before = self._size()
            for tree in facts.trees:
                self._block(tree.body, False, "")
        return HangingWrites(frozenset(self.targets), self.is_any)

    def _size(self) -> int:
        names = (self.names, self.under, self.giving, self.touching, self.filled, self.frames)
        return sum(len(each) for each in names) + len(self.targets) + self.is_any + self.decides

    # ---- statements -------------------------------------------------------------------------------------------------

    def _block(self, statements: Sequence[ast.stmt], under: bool, function: str) -> bool:
        """Go through statements; whether a condition of collected rows may leave the block before its end."""
        leaves = False
        for each in statements:
            leaves = self._statement(each, under or leaves, function) or leaves
        return leaves

    def _statement(self, node: ast.stmt, under: bool, function: str) -> bool:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._function(node, under)
            return False
        if isinstance(node, ast.ClassDef):
            return self._class(node, under, function)
        self._expressions(node, under, function)
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

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, under: bool) -> None:
        for name, value in parameters(node):
            if self._is_collected(value):
                self.names.add(name)
        for decorator in node.decorator_list:
            if self._is_collected(decorator):
                self.giving.add(node.name)
        is_loose = self.decides and node.name in self.facts.loose & self.facts.writers
        self._block(node.body, under or is_loose or node.name in self.under, node.name)
        if self._touches(node.body):
            self.touching.add(node.name)
            is_implicit = node.name.startswith("__") and node.name not in OF_INSTANCES
            self.is_any = self.is_any or is_implicit  # len(box), box[0], with box: Python calls it

    def _class(self, node: ast.ClassDef, under: bool, function: str) -> bool:
        leaves = self._block(node.body, under, function)
        for each in node.body:
            targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
            held = (target.id for target in targets if isinstance(target, ast.Name))
            self.names.update(f".{name}" for name in held if name in self.names)
        return leaves

    def _branches(self, node: ast.stmt, under: bool, function: str) -> bool:
        within = under or any(self._is_collected(each) for each in conditions(node)) or self._is_cut(node)
        self.decides = self.decides or within
        self._take_targets(node, within)
        leaves = False
        for block in blocks(node):
            is_last = isinstance(node, ast.Try) and block is node.finalbody
            leaves = self._block(block, under if is_last else within, function) or leaves
        if leaves and is_loop(node):
            for block in blocks(node):  # the loop may end early: all in it is done as often as collected rows say
                self._block(block, True, function)
        return leaves and (not is_loop(node) or any(isinstance(each, ast.Return) for each in ast.walk(node)))

    def _is_cut(self, node: ast.stmt) -> bool:
        """Whether an error of collected rows may end a block, and the program goes on."""
        if isinstance(node, ast.Try):
            hides = any(goes_on(handler) for handler in node.handlers)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            managers = [each for item in node.items for each in ast.walk(item.context_expr)]
            hides = any(isinstance(each, ast.Call) and called(each) in self.facts.hiding for each in managers)
        else:
            return False
        return hides and self._touches(node.body)

    def _touches(self, statements: Sequence[ast.stmt]) -> bool:
        """Whether statements have collected rows in hand."""
        nodes = [node for each in statements for node in ast.walk(each)]
        return any(map(self._is_source, nodes)) or any(
            isinstance(node, ast.Call) and called(node) in self.touching for node in nodes
        )

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
        elif isinstance(node, ast.Delete) and under:
            for target in node.targets:
                self._take(target)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._change(node.value, under)

    def _change(self, call: ast.Call, under: bool) -> None:
        """What a call may change that it is called on: ``rows.append(frame.count())``."""
        held = call.func.value if isinstance(call.func, ast.Attribute) else None
        if held is None or (self.facts.is_of_module(held) and called(call) not in CHANGES_WHAT_IT_IS_CALLED_ON):
            return
        is_other = called(call) in UNCHANGED or called(call) in self.facts.functions or self.facts.is_write(call)
        if any(self._is_collected(each) for each in arguments(call)) or (under and not is_other):
            self._fill(held)

    def _fill(self, held: ast.expr) -> None:
        """Something collected was put into what has a name, or by its way is decided by it."""
        self.filled.add(root(held))
        self._take(held)

    def _set(self, targets: Sequence[ast.expr], value: ast.expr | None, under: bool) -> None:
        if under or (value is not None and self._is_collected(value)):
            for target in targets:
                self._take(target)
        if isinstance(value, (ast.Name, ast.Attribute)) and any(
            getattr(each, "id", "") in self.filled for each in targets
        ):
            self._take(value)  # another name of what collected rows were put into
        if value is not None and self._has_frame(value):
            self.frames.update(each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))

    def _take(self, target: ast.expr) -> None:
        """What is assigned may hold something collected."""
        if not isinstance(target, (ast.Name, ast.Tuple, ast.List)):
            self.filled.add(root(target))
        for each in ast.walk(target):
            if isinstance(each, ast.Name) and each.id not in self.facts.foreign and each.id != "self":
                if not isinstance(target, ast.Attribute):
                    self.names.add(each.id)
            elif isinstance(each, ast.Attribute):
                self.names.add(f".{each.attr}")

    # ---- expressions ------------------------------------------------------------------------------------------------

    def _expressions(self, node: ast.stmt, under: bool, function: str) -> None:
        """Writes and calls of a statement itself, not of the statements in it."""
        for top in own(node):
            for each in ast.walk(top):
                self._expression(each, under)
                if isinstance(each, (ast.Yield, ast.YieldFrom)) and (under or self._is_collected(each)):
                    self.giving.add(function)

    def _expression(self, each: ast.AST, under: bool) -> None:
        if isinstance(each, ast.NamedExpr):
            self._set([each.target], each.value, under)
        elif isinstance(each, ast.comprehension) and self._is_collected(each.iter):
            self._take(each.target)
        elif isinstance(each, ast.Lambda):
            self._lambda(each)
        elif isinstance(each, ast.Call):
            self._call(each, under)
        elif self.facts.is_held_write(each):
            self.is_any = self.is_any or under or self.decides
        if any(self._is_collected(one) for one in decided(each)):
            self.decides = True
            for call in ast.walk(each):
                self._call(call, True)

    def _lambda(self, node: ast.Lambda) -> None:
        """A function without a name: who calls it, and when, is not known."""
        if self.decides and any(map(self.facts.may_write, ast.walk(node.body))):
            for call in ast.walk(node.body):
                self._call(call, True)

    def _call(self, call: ast.AST, under: bool) -> None:
        if not isinstance(call, ast.Call):
            return
        name = called(call)
        self._end(call, name, under)
        if name in self.facts.functions:
            if under:
                self.under.add(name)
            self._bind(call, name)
        self._hand_over(call, under)
        if self._is_write(call, name) and (under or self._is_collected(call)):
            self._written(call, name)

    def _end(self, call: ast.Call, name: str, under: bool) -> None:
        """What may end the program or hide what it does; and whether something collected is more than shown."""
        is_given = any(self._is_collected(each) for each in arguments(call))
        self.is_any = self.is_any or self._hides(call, name, under, is_given)
        self.decides = self.decides or (is_given and name not in PLAIN)
        if is_given and name in CHANGES_WHAT_IT_IS_CALLED_ON and isinstance(call.func, ast.Attribute):
            self._fill(call.func.value)
        if name == "setattr" and len(call.args) > 1 and (is_given or under):
            attribute = self._text(call.args[1])
            self.is_any = self.is_any or attribute is None
            self.names.add(f".{attribute}")

    def _hides(self, call: ast.Call, name: str, under: bool, is_given: bool) -> bool:
        """Whether any write may hang on a call: it may end the program, or what it does is not shown."""
        if name in RUNS_TEXT or name in CHECKS or (under and name in ENDS):
            return True
        if name in VIEWS and (under or self._is_collected(call)):
            return True  # what SQL reads by this name
        if name in ("set", "unset") and "conf" in chain(call.func) and (under or is_given):
            return True
        if finds_by_name(call) and (is_given or self.decides):
            return True
        return not name and not is_shown_method(call.func) and self._is_collected(call.func)

    def _hand_over(self, call: ast.Call, under: bool) -> None:
        """Functions that a call gets, and may call: with what it gets besides."""
        functions = self.facts.handed(call)
        is_collected = functions and any(self._is_collected(each) for each in arguments(call))
        if is_collected or under:
            self.under.update(functions)
        if is_collected:
            known = (function for name in functions for function in self.facts.functions[name])
            self.names.update(each.arg for function in known for each in function.args.args if each.arg != "self")

    def _bind(self, call: ast.Call, name: str) -> None:
        """Parameters of a function that is called with something collected."""
        for function in self.facts.functions[name]:
            placed = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
            if placed[:1] in (["self"], ["cls"]):
                del placed[0]
            every = [*placed, *(each.arg for each in function.args.kwonlyargs)]
            every += [each.arg for each in (function.args.vararg, function.args.kwarg) if each is not None]
            for at, value in enumerate(call.args):
                if set(placed[at : at + 1]) & self.filled:
                    self._fill(value)
                if self._is_collected(value):
                    self.names.update(placed[at : at + 1] if not isinstance(value, ast.Starred) else every)
                    self.names.update(every[len(placed) :] if at >= len(placed) else ())
                if self._has_frame(value):
                    self.frames.update(placed[at : at + 1])
            for keyword in call.keywords:
                if keyword.arg in self.filled:
                    self._fill(keyword.value)
                if self._is_collected(keyword.value):
                    self.names.update([keyword.arg] if keyword.arg in every else every)
                if self._has_frame(keyword.value) and keyword.arg in every:
                    self.frames.add(keyword.arg)

    def _is_collected(self, node: ast.AST) -> bool:
        return any(self._is_source(each) for each in ast.walk(node))

    def _is_source(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return called(node) in self.giving or self._is_action(node) or self._is_foreign(node)
        if self.facts.is_loose(node) and named(node) in self.giving:
            return True
        if isinstance(node, ast.Name):
            return node.id in self.names
        return isinstance(node, ast.Attribute) and self._is_source_attribute(node)

    def _is_source_attribute(self, node: ast.Attribute) -> bool:
        if f".{node.attr}" in self.names or (node.attr in self.giving and node.attr in self.facts.properties):
            return True
        if node.attr in PROGRESS or (node.attr in COLUMNS and self.facts.is_by_rows):
            return True
        return node.attr in BARE_ACTIONS and id(node) not in self.facts.called and not self._is_module(node.value)

    def _is_module(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self.facts.modules

    def _is_action(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return False
        name, held = called(node), getattr(node.func, "value", None)
        if name in COLLECTING:
            return True
        if name == "getattr" and len(node.args) > 1:
            method = node.args[1]
            return method.value in ACTIONS if isinstance(method, ast.Constant) else self._has_frame(node.args[0])
        if name not in ACTIONS or held is None or self._is_module(held):
            return False
        is_of_group = isinstance(held, ast.Call) and called(held) in GROUPING
        return name not in OF_GROUPS or not (node.args or is_of_group)

    def _is_known(self, node: ast.AST) -> bool:
        """Whether a part of the code may have collected the rows that were."""
        shows = isinstance(node, ast.Call) and called(node) in SHOWS
        return shows or self._is_action(node) or self._is_foreign(node)

    def _is_foreign(self, node: ast.AST) -> bool:
        """Whether a function of another package gets a DataFrame: it may collect its rows."""
        if not isinstance(node, ast.Call) or root(node.func) not in self.facts.foreign:
            return False
        return called(node) not in self.facts.functions and any(self._has_frame(each) for each in arguments(node))

    def _has_frame(self, node: ast.AST) -> bool:
        for each in ast.walk(node):
            if isinstance(each, ast.Attribute) and each.attr in FRAMES:
                return True
            if isinstance(each, ast.Name) and each.id in self.frames:
                return True
        return False

    # ---- writes -----------------------------------------------------------------------------------------------------

    def _is_write(self, call: ast.Call, name: str) -> bool:
        if name == "sql" and isinstance(call.func, ast.Attribute):
            text = self._beginning(call.args[0]) if call.args else ""
            return not text.lstrip().lower().startswith(QUERIES)
        return self.facts.is_write(call)

    def _written(self, call: ast.Call, name: str) -> None:
        place = target_of_write_to(call) if name in WRITES_TO else target_of(call)
        is_hidden = name in ("sql", "jdbc", "getattr") or name in CHANGES
        text = None if is_hidden or place is None or self._is_collected(place) else self._text(place)
        if text:
            self.targets.add(_ends(text))
        else:
            self.is_any = True

    def _beginning(self, node: ast.expr) -> str:
        while isinstance(node, (ast.JoinedStr, ast.BinOp)) or called_on(node) is not None:
            inner = called_on(node) or (node.left if isinstance(node, ast.BinOp) else None)
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
            known = self.facts.constants.get(node.id, [])
            text = known[0] if len(known) == self.facts.assigned[node.id] == 1 else None
            return text if isinstance(text, str) else None
        end: ast.expr | None = None
        if isinstance(node, ast.JoinedStr) and node.values:
            end = node.values[-1]
        elif isinstance(node, ast.BinOp):
            end = node.right
        text = self._text(end) if isinstance(end, ast.Constant) else None
        return text if text is not None and "/" in text.rstrip("/") else None
