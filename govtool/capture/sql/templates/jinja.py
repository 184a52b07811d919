"""Jinja templates compiled with unknown values, undecided tests and marks of lines.

Jinja's own parser and compiler do the work; its syntax tree is changed in between: text gets marks of its lines, ``if``
tests and loops go through the ``TemplateRun``, which decides, records and counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from jinja2 import TemplateError, TemplateSyntaxError, nodes, pass_context
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.utils import missing

from govtool.capture.sql.templates import dbt, snapshots
from govtool.capture.sql.templates.dbt_relation import Return
from govtool.capture.sql.templates.rendering import PACKAGE_KEY, TemplateRun, current
from govtool.capture.sql.templates.sandbox import SandboxedTemplates, guarded, tested
from govtool.capture.sql.templates.unknown import Limit, Unknown, plain, plain_text

_MARK = re.compile("\ue002=?(\\w+)\ue003")
"""An unknown value in a text."""

MAX_SOURCE = 4_000_000
"""Characters of a template."""


def _undefined(name: object = None, obj: Any = missing, **_: Any) -> Any:
    """Return Jinja's value for a name that has none."""
    if not isinstance(name, str) or obj is not missing:  # an item, or an attribute
        return _item(name, obj)
    run = current()
    macro = run.macro(name) or run.known("dbt", name)
    if macro is not None:
        return macro
    run.unnamed.add(plain(name))
    return Unknown(plain(name))


def _item(name: object, value: object) -> Unknown:
    """An item or attribute that a value lacks. Where that is one of a list, such as of a relation's name taken apart
    (``name.split('.')[2]``), the list is not what dbt would have.
    """
    if not isinstance(name, int) or not isinstance(value, (list, tuple, str)):
        return Unknown("value" if name is None else plain(name))
    texts = [value] if isinstance(value, str) else [part for part in value[:100] if isinstance(part, str)]
    mark = next((found for text in texts if (found := _MARK.search(text))), None)
    called = f"{mark.group(1) if mark is not None else 'item'}_{plain(name)}"
    what = f"what {mark.group(1)} stands for" if mark is not None else "a list"
    return current().missing(called, f"{what} has no item {name}: what it would be in the warehouse is not known here")


class _Context(Context):
    """The names of a template: macros by the package that it belongs to go before dbt's own names."""

    def resolve_or_missing(self, key: str) -> Any:
        """Return the value of a name; ``missing`` if it has none."""
        if key not in self.vars:
            found = current().resolve(key, str(self.parent.get(PACKAGE_KEY, "")))
            if found is not None:
                return found
        return super().resolve_or_missing(key)


def compile_macro(source: str, name: str, context: dict[str, object]) -> Any:
    """The macro of a source text, ready to be called; None if it is not valid."""
    try:
        template = compile_template(source, macro=True).template
        defined = template.new_context(context)
        for _ in template.root_render_func(defined):
            pass
    except (Limit, TemplateError, RecursionError):
        return None
    return defined.vars.get(name)  # a module has no names that begin with "_"; macros of dbt may


class CompiledTemplate:
    """A template that is ready to be rendered any number of times."""

    def __init__(self, template: Any) -> None:
        """Wrap Jinja's template."""
        self.template = template

    def render(self, run: TemplateRun) -> str:
        """The output, with marks of lines and of unknown macros.

        Raises:
            Limit: It fails, or does too much.
        """
        run.compile = compile_macro
        try:
            with run:
                return str(self.template.render(run.context()))
        except Limit:
            raise
        except Return as returned:
            return str(returned.value)
        except RecursionError as error:
            raise Limit("it calls itself without end") from error
        except MemoryError as error:
            raise Limit("it needs too much memory") from error
        except Exception as error:
            raise Limit(f"{type(error).__name__}: {str(error)[:200]}", _line(error)) from error


def _line(error: BaseException) -> int | None:
    trace = error.__traceback__
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


@lru_cache(maxsize=512)
def compile_template(source: str, macro: bool = False) -> CompiledTemplate:
    """Compile a template.

    Raises:
        Limit: It is not valid Jinja.
    """
    if len(source) > MAX_SOURCE:
        raise Limit(f"more than {MAX_SOURCE} characters")
    environment = _environment()
    try:
        tree = environment.parse(source)
        _Changer().change(tree, not macro)
        return CompiledTemplate(environment.from_string(tree))
    except TemplateSyntaxError as error:
        raise Limit(str(error.message or error)[:200], error.lineno) from error
    except (RecursionError, MemoryError) as error:
        raise Limit("it is nested too deeply") from error
    except Exception as error:
        raise Limit(f"{type(error).__name__}: {str(error)[:200]}", getattr(error, "lineno", None)) from error


@pass_context
def _finalize(context: Context, value: object) -> object:
    return current().finalize(value)


@lru_cache(maxsize=1)
def _environment() -> SandboxedTemplates:
    environment = SandboxedTemplates(
        extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols", _Dbt],
        finalize=_finalize,
        optimized=False,
        keep_trailing_newline=True,
    )
    environment.undefined = _undefined  # type: ignore[assignment]
    environment.context_class = _Context
    for name, function in list(environment.filters.items()):
        environment.filters[name] = guarded(name, function)
    for name, test in list(environment.tests.items()):
        environment.tests[name] = tested(name, cast("Callable[..., Any]", test))
    for name, extra in dbt.FILTERS.items():
        environment.filters[name] = guarded(name, extra)
    environment.filters["_test"] = lambda value: current().test(value)
    environment.filters["_loop"] = lambda value, targets: current().loop(value, targets)
    environment.filters["_unpack"] = lambda value, targets: current().unpack(value, targets)
    environment.filters["_not"] = lambda value: current().negate(value)
    environment.filters["_in"] = lambda value, values, negated: current().member(value, values, negated)
    environment.filters["_done"] = lambda value: current().done(value)
    environment.filters["_assigned"] = lambda value: current().assigned(value)
    environment.filters["_weighed"] = lambda value: current().weighed(value)
    environment.filters["_concat"] = lambda *values: current().join(*values)
    environment.globals.pop("lipsum", None)
    return environment


class _Dbt(Extension):
    """dbt's own tags: a snapshot is a table of what it selects and of dbt's columns beside it (``snapshots``); tests,
    materializations and docs are left out.
    """

    tags = {"snapshot", "materialization", "test", "data_test", "docs"}  # noqa: RUF012  Jinja's declaration

    def parse(self, parser: Parser) -> Any:
        """Parse one of the tags."""
        tag = next(parser.stream)
        name = parser.stream.current
        while parser.stream.current.type not in ("block_end", "eof"):
            next(parser.stream)
        body = parser.parse_statements((f"name:end{tag.value}",), drop_needle=True)
        if tag.value != "snapshot":
            return nodes.Scope([], lineno=tag.lineno)
        if name.type != "name":
            return body
        line = parser.stream.current.lineno
        head = nodes.TemplateData(snapshots.head(str(name.value)), lineno=tag.lineno)
        tail = nodes.Call(nodes.Name(snapshots.TAIL, "load", lineno=line), [], [], None, None, lineno=line)
        end = nodes.TemplateData(snapshots.END, lineno=line)
        return [nodes.Output([head], lineno=tag.lineno), *body, nodes.Output([end, tail], lineno=line)]


class _Changer:
    """Rewrites Jinja's tree; see the module's docstring."""

    def change(self, node: nodes.Node, marked: bool) -> None:
        """Change what is below a node, in place."""
        inner = marked and not isinstance(node, (nodes.Macro, nodes.AssignBlock, nodes.CallBlock, nodes.FilterBlock))
        for field, value in node.iter_fields():
            if isinstance(value, list):
                items: list[object] = []
                for item in value:
                    if isinstance(item, (nodes.Import, nodes.FromImport)):
                        continue  # a macro of it that is called is reported as unknown
                    if isinstance(item, (nodes.Include, nodes.Extends)):
                        items.append(_not_read(item))
                        continue
                    if isinstance(item, nodes.ExprStmt):
                        item = nodes.Output([_filter(item.node, "_done", [])], lineno=item.lineno)
                    items.append(self._replaced(item, inner) if isinstance(item, nodes.Node) else item)
                setattr(node, field, items)
            elif isinstance(value, nodes.Node):
                setattr(node, field, self._replaced(value, inner))
        if isinstance(node, (nodes.If, nodes.CondExpr)):
            node.test = _filter(node.test, "_test", [])
        elif isinstance(node, nodes.For):
            node.iter = _filter(node.iter, "_loop", [_targets(node.target)])
        elif isinstance(node, nodes.Assign) and isinstance(node.target, nodes.Tuple):
            node.node = _filter(node.node, "_unpack", [_targets(node.target)])
        elif isinstance(node, nodes.Assign) and isinstance(node.node, nodes.Call):
            node.node = _filter(node.node, "_assigned", [])

    def _replaced(self, node: nodes.Node, marked: bool) -> nodes.Node:
        self.change(node, marked)
        if isinstance(node, nodes.TemplateData):
            if marked:
                node.data = _marked(node.data, node.lineno)
            return node
        if isinstance(node, nodes.Not):
            return _filter(node.node, "_not", [])
        if isinstance(node, nodes.Concat):
            return _filter(node.nodes[0], "_concat", list(node.nodes[1:]))
        if isinstance(node, nodes.Compare) and len(node.ops) == 1 and node.ops[0].op in ("in", "notin"):
            return _filter(node.expr, "_in", [node.ops[0].expr, nodes.Const(node.ops[0].op == "notin")])
        if isinstance(node, nodes.Compare):  # of nested values a comparison may take time without end, as may a hash
            node.expr = _weighed(node.expr)
            for operand in node.ops:
                operand.expr = _weighed(operand.expr)
        elif isinstance(node, nodes.Pair):
            node.key = _weighed(node.key)
        elif isinstance(node, nodes.Getitem):
            node.arg = _weighed(node.arg)
        return node


def _not_read(node: nodes.Include | nodes.Extends) -> nodes.Output:
    """The note that the SQL of another file is missing: no template reads files."""
    name = plain_text(str(node.template.value)) if isinstance(node.template, nodes.Const) else "another file"
    tag = "include" if isinstance(node, nodes.Include) else "extends"
    message = f"the SQL of {name} is missing: {tag} is not followed"
    return nodes.Output([nodes.TemplateData(f"\ue002!{message}\ue003", lineno=node.lineno)], lineno=node.lineno)


def _targets(target: nodes.Node) -> nodes.Const:
    return nodes.Const(len(target.items) if isinstance(target, nodes.Tuple) else 0)


def _filter(node: nodes.Node, name: str, args: list[nodes.Expr]) -> nodes.Filter:
    return nodes.Filter(node, name, args, [], None, None, lineno=node.lineno)


def _weighed(node: nodes.Expr) -> nodes.Expr:
    return node if isinstance(node, (nodes.Const, nodes.Slice)) else _filter(node, "_weighed", [])


def _marked(text: str, line: int) -> str:
    """The text with a mark of its line at its head and behind every line break."""
    first, *rest = text.split("\n")
    parts = [f"\ue000{line}\ue001{first}"]
    parts.extend(f"\n\ue000{line + offset}\ue001{part}" for offset, part in enumerate(rest, 1))
    return "".join(parts)
