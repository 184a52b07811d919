"""Plans an operator a line, as Spark 2 logs them and ``explain()`` prints them."""

from __future__ import annotations

import re
from typing import Final

from govtool.capture.spark.plantext.tree import MAX_OPERATORS, MAX_TEXT, Operator, PlanTextError, PlanTree

_LINE = re.compile(r"((?:[ :]  )*(?:[:+]- )?)(\*(?:\(\d+\))? ?)?(\S.*)\Z", re.DOTALL)
_NAME = re.compile(
    r"(Execute \w+|(?:File)?Scan \w+(?: [\w.`$-]+)?(?=\[| \[)|Scan ExistingRDD"
    r"|Scan JDBCRelation\(.*?\) \[numPartitions=\d+\]|Scan hive [\w.`]+|InMemoryTableScan|[A-Za-z]\w*)"
)
_JOIN_TYPE = re.compile(r"\], (\w++)")


def parse(text: str) -> PlanTree:
    """Take one-line plan text apart into the same tree as the formatted one.

    Raises:
        PlanTextError: It is no plan text, or too large.
    """
    if len(text) > MAX_TEXT:
        raise PlanTextError(f"a plan of more than {MAX_TEXT >> 20} MiB")
    marker = "== Physical Plan =="
    found = text.find(marker)
    body = text[found + len(marker) :] if found >= 0 else text
    stack: list[tuple[int, Operator]] = []
    operators: dict[int, Operator] = {}
    subqueries: dict[int, Operator] = {}
    root: Operator | None = None
    for line in body.strip("\n").split("\n"):
        drawn = _LINE.match(line)
        if drawn is None:
            if root is not None and not line.strip():
                break
            continue
        offset = len(drawn[1])
        # No branch leads to this line: a text in the arguments above has a line break.
        if stack and not drawn[1].endswith("- ") and root is not None:
            stack[-1][1].fields["Arguments"] = stack[-1][1].fields.get("Arguments", "") + "\n" + line
            continue
        if len(operators) >= MAX_OPERATORS:
            raise PlanTextError(f"a plan of more than {MAX_OPERATORS} operators")
        operator = _operator(len(operators) + 1, drawn[3])
        operators[operator.id] = operator
        while stack and stack[-1][0] >= offset:
            stack.pop()
        if stack:
            parent = stack[-1][1]
            query = re.match(r"Subquery (?:scalar-)?subquery#?(\d+)", drawn[3])
            if query is not None:
                subqueries[int(query[1])] = operator
            else:
                parent.children.append(operator)
        elif root is None:
            root = operator
        stack.append((offset, operator))
    if root is None or _NAME.match(root.name) is None:
        raise PlanTextError("no plan")
    # Numbered from the leaves up, as formatted text is: names are to be known where they are used.
    for operator in operators.values():
        operator.id = len(operators) + 1 - operator.id
        _fields(operator)
    return PlanTree(root, {operator.id: operator for operator in operators.values()}, subqueries)


def _operator(number: int, text: str) -> Operator:
    found = _NAME.match(text)
    name = found[1] if found is not None else text.split(" ", 1)[0]
    return Operator(number, name, fields={"Arguments": text[len(name) :].strip()})


def _fields(operator: Operator) -> None:
    """Set the fields of the formatted notation."""
    for named, read in _READERS:
        if named.match(operator.name):
            read(operator, operator.fields["Arguments"])
            return


def _filter(operator: Operator, text: str) -> None:
    operator.fields["Condition"] = text


def _aggregate(operator: Operator, text: str) -> None:
    found = re.match(
        r"(?=.*\]\)\Z)\(keys?=(?>(\[.*?\]), functions=)(\[.*?\])(?:, output=(\[.*\]))?\)\Z", text, re.DOTALL
    )
    if found is not None:
        operator.fields["Keys"], operator.fields["Functions"] = found[1], found[2]
        if found[3]:
            operator.fields["Results"] = found[3]


def _join(operator: Operator, text: str) -> None:
    """Set the fields of ``[left keys], [right keys], Inner, BuildLeft, (condition)``.

    In steps, as a pattern with two lists looks at the rest of the text from each bracket.
    """
    left = text.find("], [")
    found = _typed(text, left + 3) if left > 0 and text[0] == "[" else None
    if found is not None:
        right, kind, behind = found
        fields = operator.fields
        fields["Left keys"], fields["Right keys"], fields["Join type"] = text[: left + 1], text[left + 3 : right], kind
        rest = re.sub(r"(?:, )?(?:BuildLeft|BuildRight|false|true)\b", "", text[behind + 2 :]).strip(", ")
        fields["Join condition"] = rest or "None"


def _typed(text: str, start: int) -> tuple[int, str, int] | None:
    """The end of the list that begins at ``start``: where it is, the type of the join behind it, where that ends."""
    closed = 0
    for found in _JOIN_TYPE.finditer(text, start + 1):
        end = found.end()
        if text.startswith("(", end):  # a type with its mark
            closed = text.find(")", end) if 0 <= closed < end else closed
            if closed < 0:
                continue
            end = closed + 1
        if end == len(text) or text.startswith(", ", end):
            return found.start() + 1, text[found.start(1) : end], end
    return None


def _scan(operator: Operator, text: str) -> None:
    found = re.match(r"(\[[^\]]*\])(.*)\Z", text, re.DOTALL)
    if found is not None:
        operator.fields["Output"] = _spaced(found[1])
        schema = re.search(r"ReadSchema: (struct<.*)\Z", found[2], re.DOTALL)
        if schema is not None:
            operator.fields["ReadSchema"] = schema[1]
        _, _, filters = found[2].partition("PartitionFilters: [")
        if filters:
            listed, pushed, _ = filters.partition("], PushedFilters")
            if pushed or listed.endswith("]"):
                operator.fields["PartitionFilters"] = f"[{listed.removesuffix(']') if not pushed else listed}]"


def _ordered(operator: Operator, text: str) -> None:
    found = re.match(r"(?=.*\]\)\Z)\(limit=(\d+), orderBy=(\[.*?\]), output=(\[.*\])\)\Z", text, re.DOTALL)
    if found is not None:
        operator.fields["Arguments"] = ", ".join(_spaced(group) for group in found.groups())


def _generate(operator: Operator, text: str) -> None:
    last = text[text.rfind("]", 0, -1) + 1 :]
    if last.endswith("]") and re.search(r"\), (?:true|false), \[", last):
        operator.fields["Input"] = ""  # an empty list of the columns that stay is left out


def _relation(operator: Operator, text: str) -> None:
    table, _, rest = text.partition("[")
    listed, closing, format_ = rest.rpartition("]")
    if closing and not re.search(r"\s", table):
        operator.name = f"Scan {format_.strip()} {table}" if table else operator.name
        operator.fields["Output"], operator.fields["Arguments"] = _spaced(f"[{listed}]"), ""


def _loop(operator: Operator, text: str) -> None:
    found = re.match(r"(\d+)(?:, (\[.*?\])(?=, |\Z))?", text, re.DOTALL)
    if found is not None:
        operator.fields["Loop id"], operator.fields["Output"] = found[1], found[2] or ""


def _reused(operator: Operator, text: str) -> None:
    found = re.match(r"(\[[^\]]*\])", text)
    if found is not None:
        operator.fields["Output"] = found[1]


_READERS: Final = tuple(
    (re.compile(rf"(?:{named})", re.DOTALL), read)
    for named, read in (
        (r"Filter\Z", _filter),
        (r"(?:Hash|ObjectHash|Sort)Aggregate\Z", _aggregate),
        (r".*Join\Z|CartesianProduct\Z", _join),
        (r"Scan|FileScan|LocalTableScan|InMemoryTableScan", _scan),
        (r"TakeOrderedAndProject\Z", _ordered),
        (r"Generate\Z", _generate),
        (r"Relation\Z", _relation),
        (r"UnionLoop", _loop),
        (r"ReusedExchange\Z", _reused),
    )
)
"""By names of operators: what of their arguments is a field; the first that fits."""


def _spaced(text: str) -> str:
    """A list as formatted text has it, with a space behind each comma."""
    return re.sub(r",(?=\S)", ", ", text)
