"""Jinja templates (dbt, Airflow, plain) rendered to SQL, with permissive defaults and the lines of the original file.

A value that a template needs and that nobody gave is *unknown*: it renders to a harmless identifier. Where an ``if``
depends on it, both branches are rendered, each in a variant of its own. There is one variant per branch that is not in
the first variant, not one per combination. Rendering is sandboxed and bounded: iterations, calls, output and the sizes
of values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from govtool.capture.sql.syntax.lexer import word_set
from govtool.capture.sql.templates.budget import Clock
from govtool.capture.sql.templates.dataform import SUFFIX, read_sqlx
from govtool.capture.sql.templates.jinja import compile_template
from govtool.capture.sql.templates.macros import MacroLibrary
from govtool.capture.sql.templates.placeholders import fill, parameters, plain_name
from govtool.capture.sql.templates.rendering import TemplateRun
from govtool.capture.sql.templates.run import ColumnsOf
from govtool.capture.sql.templates.stripping import strip_tags
from govtool.capture.sql.templates.unknown import Limit, as_written
from govtool.model.diagnostic import Diagnostic

MAX_VARIANTS = 12
"""Renderings of one template."""

_MARK = re.compile("\ue000(\\d+)\ue001")
_UNKNOWN = re.compile("\ue002([^\ue002\ue003]*)\ue003")
_TAGS = re.compile(r"\{\{|\{#|\{%[-+]?\s*[a-z_]+\b(?!['\"])")
_BLOCKS = re.compile(
    r"\{%[-+]?\s*(?:if|for|set|macro|call|do|raw|block|import|from|include|extends|filter|snapshot|test)\b|\{\{"
)
_CONTROL = re.compile("[\ue000-\ue003]")
_GLUED = re.compile(r"\b(from|join)(?=\{\{)", re.IGNORECASE)
"""``join{{ ref('a') }}``: SQL where dbt quotes the name."""
_OPERAND_WORDS = word_set(
    """SELECT DISTINCT WHERE AND OR NOT ON BY FROM JOIN HAVING WHEN THEN ELSE CASE IN LIKE BETWEEN SET VALUES INTO
    USING LIMIT IS TABLE VIEW UPDATE AS OFFSET QUALIFY INTERVAL ALL"""
)
_LAST_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*\Z")


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
    for output, _ in runs:
        variant = _variant(output, variables, unknown)
        variants.setdefault(variant.text, variant)
    done = [run for _, run in runs]
    holes = tuple(_holes(unknown, done, text.split("\n"), file))
    diagnostics += [hole.note for hole in holes if not hole.is_value]
    for severity, messages in (("warning", [run.beside for run in done]), ("info", [run.warned for run in done])):
        diagnostics += [Diagnostic("template", severity, text, file or None) for text in sorted(set().union(*messages))]
    if dropped:
        message = f"{dropped} more combinations of conditions were not rendered"
        diagnostics.append(Diagnostic("template", "info", message, file or None))
    return _rendered(variants, diagnostics, unknown, done)._replace(holes=holes)


def _parametrised(text: str, variables: Mapping[str, object] | None, file: str, dialect: str) -> Rendered:
    """A text without tags, whose parameters may stand for relations: which ones is not known without a value."""
    holes: list[Hole] = []
    for match in parameters(text):
        name = match["dollar"] or match["brace"] or match["inner"]
        place = None if name is None or name in (variables or {}) else _place_of(match)
        if name is None or place is None:
            continue
        line = text.count("\n", 0, match.start()) + 1
        note = Diagnostic("template", "warning", _missing(f"{place}{name}", {}), file or None, line)
        holes.append(Hole(note, _filled(place, plain_name(name)), (line,)))
    diagnostics = tuple([hole.note for hole in holes])
    return Rendered((Variant(fill(text, variables, dialect)),), diagnostics, holes=tuple(holes))


def _holes(
    unknown: Mapping[str, Mapping[int, None]], runs: Sequence[TemplateRun], lines: Sequence[str], file: str
) -> Iterator[Hole]:
    """Say what is missing and why, at the first line that needs it. The reason of the first rendering counts."""
    reasons = {name: why for run in reversed(runs) for name, why in run.reasons.items()}
    for name, places in sorted(unknown.items()):
        if name[:1] == _QUALIFIER_MARK:
            continue
        line = next(iter(places))
        message = _missing(name, reasons)
        if line <= len(lines):
            message = as_written(message, lines[line - 1])
        note = Diagnostic("template", "warning", message, file or None, line)
        text = "" if name[:1] in (_TYPE_MARK, "!") else name.lstrip(f"=?{_TARGET_MARK}")
        if text[:1] == _PART_MARK:
            place, _, text = text.partition(_PART_END)
            text = _filled(f"{place}{_PART_END}", text)
        yield Hole(note, text, tuple(places), is_value=name[:1] == _VALUE_MARK)


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
        relations |= {_UNKNOWN.sub(lambda m: m.group(1).lstrip("="), relation) for relation in run.relations}
    return Rendered(
        tuple(variants.values()),
        tuple(diagnostics),
        tuple(sorted({name.removeprefix(_TYPE_MARK) for name in unknown if name[:1] not in ("!", "=", *_MARKS)})),
        tuple(sorted(relations)),
        config if any(run.configured for run in runs) else None,
        tuple(sorted({relation for run in runs for relation in run.wanted})),
        qualifiers=tuple(sorted([name[1:] for name in unknown if name[:1] == _QUALIFIER_MARK])),
    )


UNNAMED_RELATION: Final = "which relation is read is not known"
"""How the note ends of a template in which a relation is named by a value that nobody gave."""

UNNAMED_TARGET: Final = "which relation is written is not known"
"""The same of a relation that is written."""
_TARGET_MARK: Final = ">"
"""Behind the ``=`` of such a name."""

_PART_MARK: Final = "~"
"""Behind both, where the value is a part of the name: then comes the name with an asterisk for it, and the end mark."""
_PART_END: Final = "|"

_RELATION_PLACE = re.compile(r"\b(?:FROM|JOIN)\s+(?:[^\s(),]*\.)?\Z", re.IGNORECASE)
_TARGET_PLACE = re.compile(
    r"""\b(?:INSERT\s+(?:OVERWRITE\s+|IGNORE\s+|OR\s+REPLACE\s+)?(?:INTO\s+)?(?:TABLE\s+)?|MERGE\s+(?:INTO\s+)?|UPDATE\s+
    |CREATE\s+(?:\w+\s+){0,4}?(?:TABLE|VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?)(?:[^\s(),]*\.)?["`]?\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_QUALIFIER_PLACE = re.compile(
    r"""\b(?:FROM|JOIN|INTO|UPDATE|TABLE|VIEW|EXISTS|USING)\s+(?:[^\s(),]*\.)?["`]?\Z""", re.IGNORECASE
)
_CONDITION_PLACE = re.compile(r"\b(?:WHERE|ON|HAVING|QUALIFY)\s+\Z", re.IGNORECASE)
_AFTER_CONDITION = re.compile(r"\s*(?:\Z|[;)]|(?:AND|OR|GROUP|HAVING|ORDER|LIMIT|UNION|WHERE)\b)", re.IGNORECASE)
_UNBOUNDED = re.compile(
    r"macro \S+ is not known\b|not a valid template\b|cannot be rendered\b|what the JavaScript of "
    r"|the SQL of .* is (?:missing|not read)\b"
)
"""How the notes begin of SQL that is missing and could read anything; what packages' macros read is known."""

_QUERY = "run_query"
"""dbt's macro whose result is rows of the warehouse: a macro that all know, with a value that none knows here."""
_QUALIFIER_MARK = "."
"""Begins the name of a value that nobody gave, and that stands before the dot of a table's name."""
_TYPE_MARK = ":"
"""Begins the name of what stands for a type."""
_VALUE_MARK = "?"
"""Begins the name of a value that nobody gave, and that may stand for a column."""
_MARKS = (_VALUE_MARK, _QUALIFIER_MARK)
_ONLY_A_TYPE = " (a type)"


def is_unbounded(note: Diagnostic) -> bool:
    """Return whether a note is about missing SQL that could read any table: a macro without a definition may make a
    subquery wherever it stands.
    """
    if note.code != "template" or note.severity != "warning":
        return False
    if note.message.endswith(_ONLY_A_TYPE):
        return False
    return note.message.endswith((UNNAMED_RELATION, UNNAMED_TARGET)) or _UNBOUNDED.match(note.message) is not None


def _missing(name: str, reasons: Mapping[str, str]) -> str:
    """Describe SQL that is missing: ``name`` stands for it, or for a part of it (``macro_item_0``)."""
    if name[:1] == _TYPE_MARK:
        return _missing(name[1:], reasons) + _ONLY_A_TYPE
    if name[:1] == "!":
        return name[1:]
    if name[:1] == "=" and _PART_END in name:
        pattern, _, value = name[1:].partition(_PART_END)
        why = UNNAMED_TARGET if pattern[:1] == _TARGET_MARK else UNNAMED_RELATION
        return f"{pattern.lstrip(f'{_TARGET_MARK}{_PART_MARK}')} is named by {value}, which has no value: {why}"
    if name[:2] == f"={_TARGET_MARK}":
        return f"{name[2:]} has no value: {UNNAMED_TARGET}"
    if name[:1] == "=":
        return f"{name[1:]} has no value: {UNNAMED_RELATION}"
    if name[:1] == _VALUE_MARK:
        return f"{name[1:]} has no value, or a part of it: which columns are read is not known"
    known = [key for key in reasons if name == key or name.startswith(f"{key}_")]
    if known:
        return reasons[max(known, key=len)]
    if name == _QUERY or name.startswith(f"{_QUERY}_"):
        return f"the SQL of {_QUERY} is missing: what its query returns is not known here"
    return f"macro {name} is not known: the SQL that it makes is missing"


def _before(match: re.Match[str], size: int) -> str:
    """The text before a place, without the marks of lines."""
    return _MARK.sub("", match.string[max(0, match.start() - size) : match.start()])


def _names_relation(match: re.Match[str]) -> bool:
    """Return whether a value that nobody gave is the whole name of a relation, or the last part of one; or a whole
    query or condition, which may name relations.
    """
    before = _before(match, 200)
    behind = _MARK.sub("", match.string[match.end() : match.end() + 40])
    if _QUERY_PLACE.search(before) and _CLOSING.match(behind):
        return True
    if _CONDITION_PLACE.search(before) and _AFTER_CONDITION.match(behind):
        return True
    return _RELATION_PLACE.search(before) is not None and not (behind[:1].isalnum() or behind[:1] in ("_", ".", "("))


def _names_target(match: re.Match[str]) -> bool:
    """Return whether a value that nobody gave is the whole name of a relation that is written, or the last part."""
    behind = _MARK.sub("", match.string[match.end() : match.end() + 40]).lstrip('"`')
    return _TARGET_PLACE.search(_before(match, 200)) is not None and not (
        behind[:1].isalnum() or behind[:1] in ("_", ".", "\ue002")
    )


def _place_of(match: re.Match[str]) -> str | None:
    """Return the marks of a value that nobody gave and that names a relation, or a part of one; None for others."""
    if _names_target(match):
        return f"={_TARGET_MARK}"
    if _names_relation(match):
        return "="
    before, behind = _before(match, 200), _MARK.sub("", match.string[match.end() : match.end() + 80])
    left, right = _PART_BEFORE.search(before), _PART_BEHIND.match(behind)
    prefix, suffix = left.group() if left else "", right.group() if right else ""
    before, behind = before[: len(before) - len(prefix)], behind[len(suffix) :]
    pattern = _HOLES.sub("*", f"{prefix}*{suffix}")
    follows = behind.lstrip('"`]')[:1]
    if pattern.strip("*") == "" or follows == ".":
        return None
    if _TARGET_PLACE.search(before) is not None:
        return f"={_TARGET_MARK}{_PART_MARK}{pattern}{_PART_END}"
    is_read = follows != "(" and _PART_PLACE.search(before) is not None
    return f"={_PART_MARK}{pattern}{_PART_END}" if is_read else None


def _filled(place: str, name: str) -> str:
    """Return the name of a relation that a value without a value is in; the empty text where it holds several."""
    pattern = place.rpartition(_PART_MARK)[2].removesuffix(_PART_END)
    if _PART_MARK not in place:
        return name
    return pattern.replace("*", name) if pattern.count("*") == 1 else ""


_HOLE = r"(?:\ue002[^\ue002\ue003]*\ue003|\$?\{[^{}]*\})"
_HOLES = re.compile(_HOLE)
"""Other values in the same name."""
_PART_BEFORE = re.compile(rf"(?:[\w$-]|{_HOLE})+\Z")
_PART_BEHIND = re.compile(rf"(?:[\w$-]|{_HOLE})+")
_PART_PLACE = re.compile(r"\b(?:FROM|JOIN|USING)\s+(?:[^\s(),]*\.)?[\"`\[]?\Z", re.IGNORECASE)


def _is_qualifier(match: re.Match[str]) -> bool:
    """Return whether a value that nobody gave is a part before the last of the name of a relation."""
    behind = _MARK.sub("", match.string[match.end() : match.end() + 40])
    return behind.lstrip('"`')[:1] == "." and _QUALIFIER_PLACE.search(_before(match, 200)) is not None


def _column_of(match: re.Match[str], name: str) -> str:
    """Return the name that a value nobody gave is, or is a part of, where that may be a column's; else nothing."""
    before = _before(match, 80)
    behind = _MARK.sub("", match.string[match.end() : match.end() + 80])
    left, right = _NAME_END.search(before), _NAME_START.match(behind)
    prefix, suffix = left.group() if left else "", right.group() if right else ""
    before, behind = before[: len(before) - len(prefix)], behind[len(suffix) :]
    if not prefix + suffix and _value(match, name) != name:
        return ""
    if before[-1:] in _GLUE or behind[:1] in _GLUE or behind[:1] in (".", "(") or _NAME_PLACE.search(before):
        return ""
    return prefix + name + suffix


_GLUE = frozenset({"'", '"', "`", "$", "@", "\ue002", "\ue003", "/", "-"})
"""What a name beside it is not alone with: a text, a parameter, a path, another value."""
_NAME_END = re.compile(r"\w+\Z")
_NAME_START = re.compile(r"\w+")
_NAME_PLACE = re.compile(
    r"(?:\bAS|\b(?:TABLE|VIEW|INTO|UPDATE|SCHEMA|DATABASE|EXISTS|USE|ROLE|TO))\s+\Z", re.IGNORECASE
)
"""Before an alias, or a name of something that is no column."""


def _variant(output: str, variables: Mapping[str, object] | None, unknown: dict[str, dict[int, None]]) -> Variant:
    """Take the line marks and the places of unknown macros out of a rendering; note the latter in ``unknown``."""
    if "\ue002" in output:
        for match in _UNKNOWN.finditer(output):
            name = match.group(1)
            place = _place_of(match) if name[:1] == "=" else None
            if place is not None:
                name = f"{place}{name[1:]}"
            elif name[:1] == "=":
                column = _column_of(match, name[1:])
                if not column and not _is_qualifier(match):
                    continue
                name = _VALUE_MARK + column if column else _QUALIFIER_MARK + name[1:]
            mark = output.rfind("\ue000", 0, match.start())
            line = int(output[mark + 1 : output.find("\ue001", mark)]) if mark >= 0 else 1
            is_type = name[:1] not in ("!", "=", *_MARKS) and _TYPE_PLACE.search(_before(match, 400))
            unknown.setdefault(_TYPE_MARK + name if is_type else name, {})[line] = None
        output = _UNKNOWN.sub(_place, output)
    parts, lines = _unmarked(output)
    return Variant(fill("".join(parts), variables), tuple(lines))


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
        mark = _MARK.search(output, position)
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


def _place(match: re.Match[str]) -> str:
    """An unknown macro's call: an expression where one is expected, nothing (a comment) where a clause would be.

    An unknown value is a name, or a literal where it is compared.
    """
    name = match.group(1)
    if name[:1] == "=":
        return _value(match, name[1:])
    if name[:1] == "!":
        return ""
    before = _before(match, 400)
    before = _COMMENTS.sub(" ", before).rstrip()
    if not before:
        return " " if not name else f"/* {name} */"
    # AS ({{ macro() }}), FROM ({{ macro() }}): nothing but a query can stand there.
    if _QUERY_PLACE.search(before) and _CLOSING.match(match.string, match.end()):
        return f"SELECT * FROM {name}()"
    if _TYPE_PLACE.search(before):
        return "UNKNOWN"
    last = before[-1]
    if _NAMED_QUERY.match(match.string, match.end()) or _PART.match(match.string, match.end()):
        return name
    if last in ",(=<>+-*/|.%":
        return f"{name}()"
    if last.isalnum() or last == "_":
        word = _LAST_WORD.search(before)
        if word and word.group().upper() == "AS":
            return name or "x"
        if word and word.group().upper() in _OPERAND_WORDS:
            return f"{name}()"
    return f"/* {name} */"


_COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_QUERY_PLACE = re.compile(r"\b(?:AS|FROM|JOIN)\s*\(\Z", re.IGNORECASE)
_CLOSING = re.compile("(?:\\s|\ue000\\d+\ue001)*\\)")
"""``AS ({{ macro() }})``: what the macro makes is a query."""
_PART = re.compile("(?:\ue000\\d+\ue001)?[_\\d]")
"""``{{ macro() }}_raw``: a part of a name."""
_NAMED_QUERY = re.compile("(?:\\s|\ue000\\d+\ue001)+AS(?:\\s|\ue000\\d+\ue001)*\\(", re.IGNORECASE)
"""``{{ macro() }} AS (SELECT …``: the name of a common table expression."""
_TYPE_PLACE = re.compile(r"(?:::|\bCAST\s*\((?:[^()]|\([^()]*\))*\s+AS)\s*\Z", re.IGNORECASE)
"""``CAST(a AS {{ type }})``, ``a::{{ type }}``: a type is expected."""

_COMPARED = re.compile(
    r"(?:(?<![=:<>!@|-])(?:=|<>|!=|<=|>=|<|>)\s*|\s[+-]\s+|\bIN\s*\(\s*|\b(?:LIKE|ILIKE|BETWEEN|LIMIT|OFFSET|INTERVAL)\s+"
    r"|\bBETWEEN\s+\S+\s+AND\s+)\Z",
    re.IGNORECASE,
)


def _value(match: re.Match[str], name: str) -> str:
    """``d >= {{ day }}`` compares with a value; a name there would be taken for a column."""
    source = match.string
    mark = _MARK.match(source, match.end())
    end = mark.end() if mark else match.end()
    following = source[end : end + 1]
    if following.isalnum() or following in ("_", ".", "(", "'", '"', "`", "\ue002"):
        return name
    before = _MARK.sub("", source[max(0, match.start() - 120) : match.start()])
    if _TYPE_PLACE.search(before):
        return "UNKNOWN"
    return f"'{name}'" if _COMPARED.search(before) else name
