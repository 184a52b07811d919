"""Jinja templates (dbt, Airflow, plain) rendered to SQL, with permissive defaults and the lines of the original file.

A value that a template needs and that nobody gave is *unknown*: it renders to a harmless identifier. Where an ``if``
depends on it, both branches are rendered, each in a variant of its own. There is one variant per branch that is not in
the first variant, not one per combination. Rendering is sandboxed and bounded: iterations, calls, output and the sizes
of values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from govtool.capture.sql.templates import missing_values
from govtool.capture.sql.templates.budget import Clock
from govtool.capture.sql.templates.dataform import SUFFIX, read_sqlx
from govtool.capture.sql.templates.jinja import compile_template
from govtool.capture.sql.templates.macros import MacroLibrary
from govtool.capture.sql.templates.missing_values import LINE_MARK, MISSING
from govtool.capture.sql.templates.placeholders import ParameterValues, fill, name_of, parameters, plain_name, schemas
from govtool.capture.sql.templates.rendering import TemplateRun
from govtool.capture.sql.templates.run import ColumnsOf
from govtool.capture.sql.templates.stripping import strip_tags
from govtool.capture.sql.templates.unknown import Limit, as_written
from govtool.model.diagnostic import Diagnostic

MAX_VARIANTS = 12
"""Renderings of one template."""

_TAGS = re.compile(r"\{\{|\{#|\{%[-+]?\s*[a-z_]+\b(?!['\"])")
_BLOCKS = re.compile(
    r"\{%[-+]?\s*(?:if|for|set|macro|call|do|raw|block|import|from|include|extends|filter|snapshot|test)\b|\{\{"
)
_CONTROL = re.compile("[\ue000-\ue003]")
_GLUED = re.compile(r"\b(from|join)(?=\{\{)", re.IGNORECASE)
"""``join{{ ref('a') }}``: SQL where dbt quotes the name."""


class Variant(NamedTuple):
    """One rendering of a template."""

    text: str
    lines: tuple[int, ...] | None = None
    """For each line of ``text`` the 1-based line of the original; None if they are the same."""

    def line_of(self, line: int) -> int:
        """The line of the original file that a 1-based line of ``text`` comes from."""
        if self.lines is None or not self.lines:
            return line
        return self.lines[min(max(line, 1), len(self.lines)) - 1]


class Hole(NamedTuple):
    """The places of SQL that is missing from a template, as a name has no value."""

    note: Diagnostic
    text: str
    """What stands for it in the renderings; may be empty."""
    lines: tuple[int, ...]
    """Lines of the template, 1-based."""
    is_value: bool = False
    """It is a value that nobody gave: missing only where it may stand for a column."""


class Rendered(NamedTuple):
    """The result of rendering a template."""

    variants: tuple[Variant, ...]
    """At least one. The first takes the first branch of every ``if`` that is not decided."""
    diagnostics: tuple[Diagnostic, ...] = ()
    macros: tuple[str, ...] = ()
    """Macros that were called and are not known, sorted."""
    relations: tuple[str, ...] = ()
    """Relations that ``ref`` and ``source`` named, sorted, as rendered."""
    config: Mapping[str, object] | None = None
    """Arguments of dbt's ``config(...)``: ``materialized``, ``alias``, ``schema`` …; None if it was not called."""
    wanted: tuple[str, ...] = ()
    """Relations whose columns the template needs, sorted: with other columns it may render otherwise."""
    holes: tuple[Hole, ...] = ()
    """The places of what is missing; their notes are among the diagnostics."""
    qualifiers: tuple[str, ...] = ()
    """What stands for values that nobody gave, before the dot of a table's name, sorted."""


def is_template(text: str) -> bool:
    """Return whether a text has Jinja tags."""
    return "{" in text and _TAGS.search(text) is not None


def render(
    text: str,
    variables: Mapping[str, object] | None = None,
    file: str = "",
    *,
    macros: MacroLibrary | None = None,
    dialect: str = "",
    columns: ColumnsOf | None = None,
) -> Rendered:
    """Render a SQL text.

    Args:
        text: SQL with or without Jinja tags. Text without tags and parameters goes through as it is.
        variables: What names stand for, dbt's ``var('x')`` and ``env_var('x')`` included. Dotted keys make objects.
        file: The file that diagnostics name.
        macros: Macros of the project; see ``MacroLibrary``.
        dialect: How names of relations are quoted that need to be, and which implementation of a macro counts.
        columns: Tells the columns of relations; None: none are known.

    Returns:
        The renderings. A template that cannot be rendered gives its text without the tags, and a ``template``
        diagnostic.
    """
    if file.lower().endswith(SUFFIX):
        sqlx = read_sqlx(text, file)
        return Rendered((Variant(fill(sqlx.text, variables, dialect)),), sqlx.diagnostics)
    if not is_template(text):
        return _parametrised(text, variables, file, dialect)
    source = _GLUED.sub(r"\1 ", _CONTROL.sub(" ", text))

    def stripped(notes: Iterable[Diagnostic]) -> Rendered:
        return Rendered((Variant(fill(strip_tags(source), variables, dialect)),), tuple(notes))

    try:
        template = compile_template(source)
    except Limit as error:
        if _BLOCKS.search(source) is None:
            # Braces of something else, such as a format string.
            return _parametrised(text, variables, file, dialect)
        note = Diagnostic("template", "warning", f"not a valid template: {error}", file or None, error.line)
        return stripped([note])
    clock = Clock()

    def attempt(choices: Mapping[str, bool]) -> tuple[str, TemplateRun]:
        run = TemplateRun(choices, dict(variables or {}), macros, file, dialect, columns, clock)
        output = template.render(run)
        run.unused(output)
        return output, run

    runs, diagnostics, dropped = _all_runs(attempt, file)
    if not runs:
        return stripped(diagnostics)
    variants: dict[str, Variant] = {}
    unknown: dict[str, dict[int, None]] = {}
    named: dict[Hole, None] = {}
    qualifiers: set[str] = set()
    for output, _ in runs:
        rendered, lines = _variant(output, unknown)
        found, schemas = _named_by_parameters(rendered, variables, file, dialect, lines)
        named.update(dict.fromkeys(found))
        qualifiers |= schemas
        variant = Variant(fill(rendered, variables, dialect), lines)
        variants.setdefault(variant.text, variant)
    done = [run for _, run in runs]
    holes = (*_holes(unknown, done, text.split("\n"), file), *named)
    diagnostics += [hole.note for hole in holes if not hole.is_value]
    for severity, messages in (("warning", [run.beside for run in done]), ("info", [run.warned for run in done])):
        diagnostics += [Diagnostic("template", severity, text, file or None) for text in sorted(set().union(*messages))]
    if dropped:
        message = f"{dropped} more combinations of conditions were not rendered"
        diagnostics.append(Diagnostic("template", "info", message, file or None))
    rendering = _rendered(variants, diagnostics, unknown, done)
    return rendering._replace(holes=holes, qualifiers=tuple(sorted({*rendering.qualifiers, *qualifiers})))


def _parametrised(text: str, variables: Mapping[str, object] | None, file: str, dialect: str) -> Rendered:
    """A text without tags, whose parameters may stand for relations: which ones is not known without a value."""
    holes, qualifiers = _named_by_parameters(text, variables, file, dialect)
    diagnostics = tuple([hole.note for hole in holes])
    variant = Variant(fill(text, variables, dialect))
    return Rendered((variant,), diagnostics, holes=tuple(holes), qualifiers=tuple(sorted(qualifiers)))


def _named_by_parameters(
    text: str, variables: Mapping[str, object] | None, file: str, dialect: str, lines: Sequence[int] = ()
) -> tuple[list[Hole], set[str]]:
    """The places where parameters without a value name relations, and what stands for their schemas.

    Args:
        text: With the parameters.
        variables: What has a value.
        file: The file that notes name.
        dialect: Whose clients' parameters count.
        lines: For each line of the text the line of the template, if they are not the same.
    """
    holes: list[Hole] = []
    qualifiers: set[str] = set()
    values = ParameterValues(text, variables, dialect)
    qualifiers.update(schemas(text, values, dialect))
    number, counted = 1, 0
    for match in parameters(text, values):
        name = name_of(match)
        if not name or values.of(match, match.start()) is not None:
            continue
        place = missing_values.place_of(match)
        if place is None:
            if missing_values.is_qualifier(match):
                qualifiers.add(plain_name(name))
            continue
        number, counted = number + text.count("\n", counted, match.start()), match.start()
        line = lines[min(number, len(lines)) - 1] if lines else number
        note = Diagnostic("template", "warning", missing_values.description(f"{place}{name}", {}), file or None, line)
        holes.append(Hole(note, missing_values.filled(place, plain_name(name)), (line,)))
    return holes, qualifiers


def _holes(
    unknown: Mapping[str, Mapping[int, None]], runs: Sequence[TemplateRun], lines: Sequence[str], file: str
) -> Iterator[Hole]:
    """Say what is missing and why, at the first line that needs it. The reason of the first rendering counts."""
    reasons = {name: why for run in reversed(runs) for name, why in run.reasons.items()}
    for name, places in sorted(unknown.items()):
        if missing_values.qualifier(name):
            continue
        line = next(iter(places))
        message = missing_values.description(name, reasons)
        if line <= len(lines):
            message = as_written(message, lines[line - 1])
        note = Diagnostic("template", "warning", message, file or None, line)
        text, is_value = missing_values.relation_or_value(name)
        yield Hole(note, text, tuple(places), is_value)


def _all_runs(
    attempt: Callable[[Mapping[str, bool]], tuple[str, TemplateRun]], file: str
) -> tuple[list[tuple[str, TemplateRun]], list[Diagnostic], int]:
    """Render a template with every combination of undecided tests, up to a bound.

    Returns:
        The renderings, notes of those that failed, and how many combinations were left out.
    """
    runs: list[tuple[str, TemplateRun]] = []
    diagnostics: list[Diagnostic] = []
    seen: set[frozenset[tuple[str, bool]]] = set()
    # Breadth first: flip one undecided test at a time, then those that come into sight behind it.
    queue: list[dict[str, bool]] = [{}]
    known: set[str] = set()
    dropped = 0
    while queue:
        choices = queue.pop(0)
        key = frozenset(choices.items())
        if key in seen:
            continue
        seen.add(key)
        if len(runs) >= MAX_VARIANTS:
            dropped += 1
            continue
        try:
            output, run = attempt(choices)
        except Limit as error:
            message = f"cannot be rendered: {error}"
            diagnostics.append(Diagnostic("template", "warning", message, file or None, error.line))
            continue
        runs.append((output, run))
        for test, decision in run.undecided.items():
            if test not in known:
                known.add(test)
                queue.append({**choices, test: not decision})
    return runs, diagnostics, dropped


def _rendered(
    variants: Mapping[str, Variant],
    diagnostics: list[Diagnostic],
    unknown: Iterable[str],
    runs: list[TemplateRun],
) -> Rendered:
    """Return the result of all renderings: of settings, the first rendering counts."""
    config: dict[str, object] = {}
    relations: set[str] = set()
    for run in reversed(runs):
        config.update(run.config)
        relations |= {MISSING.sub(lambda m: m.group(1).lstrip("="), relation) for relation in run.relations}
    return Rendered(
        tuple(variants.values()),
        tuple(diagnostics),
        tuple(sorted({missing_values.macro(name) for name in unknown} - {""})),
        tuple(sorted(relations)),
        config if any(run.configured for run in runs) else None,
        tuple(sorted({relation for run in runs for relation in run.wanted})),
        qualifiers=tuple(sorted({missing_values.qualifier(name) for name in unknown} - {""})),
    )


def _variant(output: str, unknown: dict[str, dict[int, None]]) -> tuple[str, tuple[int, ...]]:
    """Take the line marks and the places of unknown macros out of a rendering; note the latter in ``unknown``.

    Returns:
        The text, and for each of its lines the line of the template.
    """
    if "\ue002" in output:
        for match in MISSING.finditer(output):
            name = missing_values.noted(match)
            if not name:
                continue
            mark = output.rfind("\ue000", 0, match.start())
            line = int(output[mark + 1 : output.find("\ue001", mark)]) if mark >= 0 else 1
            unknown.setdefault(name, {})[line] = None
        output = MISSING.sub(missing_values.replacement, output)
    parts, lines = _unmarked(output)
    return "".join(parts), tuple(lines)


def _unmarked(output: str) -> tuple[list[str], list[int]]:
    """The parts of a rendering between its marks, and for each of its lines the line of the template.

    That is the line of the first part which is not blank: ``-%}`` puts text on the line on which the tag before began.
    """
    parts: list[str] = []
    lines = [1]
    is_empty, is_blank = True, True
    """Of the last line."""
    here, position = 1, 0
    while position <= len(output):
        mark = LINE_MARK.search(output, position)
        piece = output[position : len(output) if mark is None else mark.start()]
        if piece:
            parts.append(piece)
            first, *rest = piece.split("\n")
            has_text = bool(first) and not first.isspace()
            if is_empty or (is_blank and has_text):
                lines[-1] = here
            is_empty, is_blank = is_empty and not first, is_blank and not has_text
            if rest:
                lines.extend([here] * len(rest))
                is_empty, is_blank = not rest[-1], not rest[-1].strip()
        if mark is None:
            break
        here, position = int(mark.group(1)), mark.end()
    return parts, lines
