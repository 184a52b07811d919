"""Formatted plan text as operators: the drawn tree gives children, the numbered paragraphs below it their details.

    AdaptiveSparkPlan (3)
    +- Project (2)
       +- Scan parquet shop.orders (1)


    (1) Scan parquet shop.orders
    Output [1]: [id#7]
    …

Subqueries follow in the same form, each below a line that names the operator that holds it. The other notation, one
line an operator (Spark 2, ``explain()``), has the same tree with everything on its lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MAX_TEXT = 32 << 20
"""Characters of one plan; the largest seen in the wild have 8 million."""
MAX_OPERATORS = 50_000
_ENDLESS_NUMBER = re.compile(r"(?<!\d)\d{1001}")
"""Python reads no number of more than 4,300 digits; Spark writes none of more than 400."""

_NODE = re.compile(
    r"(?=.*\)\Z)((?:[ :]  )*+(?:[:+]- )?)(\*(?:\(\d+\))? ?)?(.*?) ?\((\d+)\)"
    r"(?: \(columnarIn=\w+, columnarOut=\w+\))?(?:, Statistics\(.*\))?\Z",
    re.DOTALL,
)
_LINE = re.compile(r"((?:[ :]  )*(?:[:+]- )?)(\*(?:\(\d+\))? ?)?(\S.*)\Z", re.DOTALL)
_HEAD = re.compile(r"\((\d+)\) (.*?)(?: \[codegen id : \d+\])?\Z", re.DOTALL)
_FIELD = re.compile(
    r"(Output|Input|Arguments|Condition|Keys|Functions|Aggregate Attributes|Results|Result|Left output|Right output"
    r"|Left keys|Right keys|Join type|Join condition|Batched|Location|PartitionFilters|PushedFilters|DataFilters"
    r"|ReadSchema|Loop id|Limit|Accumulated|Format|SelectedBucketsCount|OptionalBucketIds|Bucketed|RuntimeFilters"
    r"|PushedAggregat(?:ion|es)|PushedGroupBy(?:Expressions)?|PushedTopN|PushedLimit|PushedOffset|PushedSample|PushedJoins"
    r"|External engine query|DictionaryFilters|RequiredDataFilters|UnusedIndexes|Metadata)"
    r"(?: \[(\d+)\])? ?:(?: (.*))?\Z",
    re.DOTALL,
)
_LISTS = frozenset({"Output", "Input", "Keys", "Functions", "Results", "Aggregate Attributes"})
_SUBQUERY = re.compile(r"Subquery:\d+ Hosting operator id = (\d+) Hosting Expression = (.*)\Z", re.DOTALL)
_SUBQUERY_ID = re.compile(r"(?:subquery|dynamicpruning|exists|list|lateral)#(\d+)")
_REUSES = re.compile(r"Reuses operator id: (\d+)")
_CATALOG_TABLE = re.compile(r"CatalogTable\(\n.*?\n\)", re.DOTALL)
_PLAN_ID = re.compile(r", \[id=#\d+\]")
_PHASE = re.compile(r"== (\w[\w ]*) ==\Z")


class PlanTextError(ValueError):
    """This is no plan text, or one beyond all measure; the message says which."""


@dataclass(slots=True)
class Operator:
    """One operator of a plan."""

    id: int
    name: str
    """``Scan parquet shop.orders``, ``Execute InsertIntoHadoopFsRelationCommand``."""
    children: list[Operator] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    """``Output``, ``Arguments`` … as text. In one-line notation all that follows the name is ``Arguments``."""
    counts: dict[str, int] = field(default_factory=dict)
    """Numbers of elements of fields."""
    reuses: int | None = None
    """Of a reused exchange: the operator that it stands for."""

    def walk(self) -> Iterator[Operator]:
        """This operator and all below it, parents first; one that several hold comes once."""
        stack, seen = [self], {self.id}
        while stack:
            operator = stack.pop()
            yield operator
            new = [child for child in operator.children if child.id not in seen]
            seen.update(child.id for child in new)
            stack.extend(reversed(new))


@dataclass(slots=True)
class PlanTree:
    """A whole plan."""

    root: Operator
    operators: dict[int, Operator]
    subqueries: dict[int, Operator]
    """Roots of subqueries by the number in ``subquery#12``."""


def parse(text: str) -> PlanTree:
    """Take formatted plan text apart.

    Raises:
        PlanTextError: It is none, or too large.
    """
    if len(text) > MAX_TEXT:
        raise PlanTextError(f"a plan of more than {MAX_TEXT >> 20} MiB")
    if _ENDLESS_NUMBER.search(text):
        raise PlanTextError("a plan with a number of more than a thousand digits")
    main, _, rest = text.partition("\n===== Subqueries =====\n")
    main = physical_plan(main)
    operators: dict[int, Operator] = {}
    root = _part(main, operators)
    subqueries: dict[int, Operator] = {}
    for hosting, body in _subqueries(rest):
        found = _SUBQUERY_ID.search(hosting)
        if found is None or not body.strip():
            continue
        subqueries.setdefault(int(found[1]), _part(body, operators))
    _refuse_circles(operators)
    return PlanTree(root, operators, subqueries)


def _refuse_circles(operators: Mapping[int, Operator]) -> None:
    """Refuse a plan that contains itself: a spoiled text may give a number twice."""
    waiting = dict.fromkeys(operators, 0)
    for operator in operators.values():
        for child in operator.children:
            waiting[child.id] += 1
    free = [number for number, parents in waiting.items() if not parents]
    for number in free:  # grows: an operator is free once all that hold it are
        for child in operators[number].children:
            waiting[child.id] -= 1
            if not waiting[child.id]:
                free.append(child.id)
    if len(free) < len(operators):
        raise PlanTextError("a plan that contains itself")


def is_formatted(text: str) -> bool:
    """Return whether plan text is of the formatted kind: every operator numbered, with a paragraph of its own."""
    main = physical_plan(text)
    first = main.lstrip("\n").split("\n", 1)[0]
    return _NODE.match(first) is not None and re.search(r"^\(\d+\) ", main, re.MULTILINE) is not None


def physical_plan(text: str) -> str:
    """The physical plan, where several follow each other."""
    marker = "== Physical Plan =="
    found = text.find(marker)
    return text[found + len(marker) :].lstrip("\n") if found >= 0 else text.lstrip("\n")


def _subqueries(text: str) -> Iterator[tuple[str, str]]:
    hosting: str | None = None
    body: list[str] = []
    for line in text.split("\n"):
        found = _SUBQUERY.match(line)
        if found is None:
            body.append(line)
            continue
        if hosting is not None:
            yield hosting, "\n".join(body)
        hosting, body = found[2], []
    if hosting is not None:
        yield hosting, "\n".join(body)


def _part(text: str, operators: dict[int, Operator]) -> Operator:
    lines = text.split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    drawn: list[str] = []
    while lines and lines[0].strip():
        drawn.append(lines.pop(0))
    root = _draw(drawn, operators)
    _detail(lines, operators)
    return root


@dataclass(slots=True)
class _Drawing:
    """A part of the tree that is drawn with offsets of its own: all of it, or one plan of an adaptive one.

    Spark counts the offset of the plans of a cached table from the cached table that it lies in, not from the margin:
    then the lines of this part and the next ones of the tree around it may stand below each other. Operators are
    numbered from the leaves up, so that those of an adaptive plan come before it, and those that follow it after it.
    """

    base: int
    parent: Operator | None = None
    is_initial: bool = False
    is_shifted: bool = False
    stack: list[tuple[int, Operator]] = field(default_factory=list)

    def has(self, offset: int, number: int) -> bool:
        """Return whether an operator at an offset is of this part."""
        if self.parent is None:
            return True
        return offset >= self.base and not (self.is_shifted and number > self.parent.id)

    def add(self, offset: int, operator: Operator) -> None:
        """Draw an operator below the last one that stands further to the left."""
        while self.stack and self.stack[-1][0] >= offset:
            self.stack.pop()
        parent = self.stack[-1][1] if self.stack else self.parent
        if parent is None:
            pass
        elif parent.name == "AdaptiveSparkPlan" and parent.children and parent.children[-1].name:
            # One that has run shows its last plan and its first one: the first is the query's.
            if self.is_initial and parent is self.parent and not self.stack:
                parent.children = [operator]
        elif all(child is not operator for child in parent.children):
            parent.children.append(operator)  # a subquery that two operators hold is drawn twice
        self.stack.append((offset, operator))


def _draw(lines: list[str], operators: dict[int, Operator]) -> Operator:
    """Operators and their children: a child stands further to the right."""
    drawings = [_Drawing(0)]
    root: Operator | None = None
    pending = ""
    for line in lines:
        phase = _PHASE.search(line)
        if phase is not None:
            offset = _LINE.match(line)
            _open(drawings, len(offset[1]) if offset else 0, phase[1] == "Initial Plan")
            continue
        whole = f"{pending}\n{line}" if pending else line
        found = _NODE.match(whole)
        if found is None:
            pending = whole
            continue
        pending = ""
        operator = Operator(int(found[4]), found[3].strip())
        if len(operators) >= MAX_OPERATORS:
            raise PlanTextError(f"a plan of more than {MAX_OPERATORS} operators")
        operator = operators.setdefault(operator.id, operator)
        root = root or operator
        while not drawings[-1].has(len(found[1]), operator.id):
            drawings.pop()
        drawings[-1].add(len(found[1]), operator)
    if root is None:
        raise PlanTextError("no plan")
    return root


def _open(drawings: list[_Drawing], base: int, is_initial: bool) -> None:
    """Begin with a plan of an adaptive one: the last of the operators, unless it has shown its last plan already."""
    if is_initial:
        for place in range(len(drawings) - 1, 0, -1):
            drawing = drawings[place]
            if drawing.base == base and not drawing.is_initial:
                drawings[place:] = [_Drawing(base, drawing.parent, True, drawing.is_shifted)]
                return
    above = drawings[-1].stack[-1:]
    if above:
        drawings.append(_Drawing(base, above[0][1], is_initial, base != above[0][0] + len("+- ")))


@dataclass(slots=True)
class _FieldLines:
    """The lines of a field; Spark up to 3.3 prints a table's whole description among the arguments, lines and all."""

    lines: list[str]
    in_table: bool = False
    """Within the description of a table, whose end was not seen yet."""

    def add(self, line: str) -> None:
        self.lines.append(line)
        if "CatalogTable(" in line:
            self.in_table = True
        elif line.startswith(")"):
            self.in_table = False


def _detail(lines: list[str], operators: dict[int, Operator]) -> None:
    """Add to operators what stands below the tree: a head for each, ``(1) Scan parquet``, and its fields."""
    current: Operator | None = None
    key = ""
    found: dict[tuple[int, str], _FieldLines] = {}
    for number, line in enumerate(lines):
        headed = _headed(line, operators) if number == 0 or not lines[number - 1].strip() else None
        if headed is not None:
            current, key = headed, ""
            continue
        if current is None:
            continue
        grown = found.get((current.id, key))
        in_table = grown is not None and grown.in_table and line != ")"
        field_ = None if in_table else _FIELD.match(line)
        if field_ is not None:
            key = field_[1]
            if (current.id, key) in found:
                continue
            found[current.id, key] = _FieldLines([])
            found[current.id, key].add(field_[3] or "")
            if field_[2]:
                current.counts[key] = int(field_[2])
        elif grown is not None and key in _LISTS and grown.lines[-1].endswith("]"):
            found.setdefault((current.id, "Text"), _FieldLines([])).lines += [line] * bool(line)
        elif grown is not None:
            grown.add(line)
    for (number, name), field_lines in found.items():
        value = _PLAN_ID.sub("", "\n".join(field_lines.lines).rstrip("\n"))
        operators[number].fields[name] = _with_named_tables(value) if "CatalogTable(" in value else value


def _headed(line: str, operators: dict[int, Operator]) -> Operator | None:
    """The operator of which a line is the head; None if it is none."""
    found = _HEAD.match(line.rstrip()) if line.startswith("(") else None
    known = operators.get(int(found[1])) if found is not None else None
    if found is None or known is None or not _same(known.name, found[2]):
        return None
    reuses = _REUSES.search(line)
    if reuses is not None:
        known.reuses = int(reuses[1])
    return known


def _with_named_tables(text: str) -> str:
    """The text with tables by their names; where no description ends any more, none is looked for."""
    end = text.rfind("\n)") + 2
    return _CATALOG_TABLE.sub(_table, text[:end]) + text[end:] if end > 1 else text


def _table(found: re.Match[str]) -> str:
    """A table by its name, as later versions print it."""
    parts = [
        m[1] for key in ("Catalog", "Database", "Table") if (m := re.search(rf"^{key}: (.+)$", found[0], re.MULTILINE))
    ]
    return ".".join(f"`{part}`" for part in parts)


def _same(name: str, heading: str) -> bool:
    heading = re.sub(r"(?:(?<!\s)\s++)?\[(?:codegen id : \d+|Reuses operator id: \d+)\]", "", heading).strip()
    return heading.split("\n")[0].startswith(name.split("\n")[0][:40]) or name.startswith(heading[:40])
