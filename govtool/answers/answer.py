"""The base of all answers: one question's result as an object of JSON, as rows, and as a table of Arrow or pandas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from govtool.answers.envelope import envelope
from govtool.errors import EvidenceError, UnknownNameError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from govtool.answers.coverage import Coverage
    from govtool.answers.version import GraphVersion
    from govtool.model import Diagnostic

_DETAILS = "govtool coverage --details"
Cell = str | int | float | bool | tuple[str, ...] | None
"""A value of a row. A tuple holds several names; None means that there is no value."""


@dataclass(frozen=True, slots=True)
class Answer(ABC):
    """The result of one question. Immutable; it prints nothing.

    A subclass names its JSON schema and the columns of its table, and yields the values of both.
    """

    schema: ClassVar[str]
    """Name and major version of the JSON schema: ``impact/1``."""
    fields: ClassVar[tuple[str, ...]]
    """The columns of the table, which are the header of the CSV."""
    types: ClassVar[Mapping[str, str]] = {}
    """The type of each column that is not text: ``integer``, ``number``, ``boolean`` or ``texts`` (a list)."""

    def __init_subclass__(cls) -> None:
        """Keep the short ``repr``: a notebook shows it, and that of the parts of a long answer fills pages."""
        cls.__repr__ = Answer.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """``<govtool.ImpactAnswer 80 × verdict, column, dataset …>``."""
        names = ", ".join(self.fields[:3]) + (" …" if len(self.fields) > 3 else "")
        return f"<govtool.{type(self).__name__} {sum(1 for _ in self.rows())} × {names}>"

    def _repr_html_(self) -> str:
        """The first rows as a table, for notebooks."""
        from govtool.answers.notebook import table

        return table(self.fields, self.rows(), getattr(self, "version", None))

    def header(self) -> Mapping[str, object]:
        """The keys that come first in the JSON object. An answer about a version of the graph names it here."""
        return {}

    @abstractmethod
    def body(self) -> Mapping[str, object]:
        """The keys of the JSON object after the header."""

    @abstractmethod
    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """The rows of the table: a value for each of ``fields``."""

    def to_dict(self) -> dict[str, object]:
        """The answer as the command's ``--format json`` writes it; see docs/output.md."""
        return envelope(self.schema, {**self.header(), **self.body()})

    def to_arrow(self) -> pa.Table:
        """The table in Arrow: text, integers, numbers, booleans, and lists of text."""
        import pyarrow as pa

        kinds = {
            "text": pa.string(),
            "integer": pa.int64(),
            "number": pa.float64(),
            "boolean": pa.bool_(),
            "texts": pa.list_(pa.string()),
        }
        schema = pa.schema([(name, kinds[self.types.get(name, "text")]) for name in self.fields])
        columns: Sequence[Sequence[Any]] = list(zip(*self.rows(), strict=True)) or [()] * len(self.fields)
        arrays = [_array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def to_pandas(self) -> Any:
        """The table as a ``pandas.DataFrame``.

        Raises:
            UsageError: pandas is not installed (``usage.missing-library``).
        """
        table = self.to_arrow()
        try:
            return table.to_pandas()
        except ImportError as error:
            raise UsageError(
                "pandas is not installed", code="usage.missing-library", hint="pip install pandas, or use to_arrow()"
            ) from error


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column. Names of files need not be Unicode, as Arrow's texts must: what is none is escaped."""
    import pyarrow as pa

    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([_unicode(value) for value in values], kind)


def _unicode(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_unicode(one) for one in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class GraphAnswer(Answer):
    """An answer about one version of the graph."""

    version: GraphVersion

    def header(self) -> Mapping[str, object]:
        """The keys that name store and commit."""
        return self.version.header()

    def is_unclear(self) -> bool:
        """True if anything that was not understood, or is unknown, could matter to the answer: see ``--strict``."""
        return self.version.unclear > 0

    def check_strict(self) -> None:
        """Refuse an answer to which something could matter that was not understood, or is unknown.

        Raises:
            EvidenceError: There is such a thing (``evidence.unclear``).
        """
        if self.is_unclear():
            raise EvidenceError(
                f"not everything that could matter is known: {self.version.unclear_text() or 'a verdict is unknown'}",
                code="evidence.unclear",
                hint=_DETAILS,
            )

    def check_coverage(self, *, strict: bool = False, min_coverage: float | None = None) -> None:
        """Refuse the answer where too little of the evidence was understood.

        Args:
            strict: Everything has to be understood.
            min_coverage: So many percent have to be.

        Raises:
            EvidenceError: Less was, or nothing at all (``evidence.coverage``).
        """
        coverage = self.version.coverage
        require_coverage(coverage, strict=strict, min_coverage=min_coverage, hint=_DETAILS)


def require_coverage(
    coverage: Coverage,
    *,
    strict: bool,
    min_coverage: float | None,
    hint: str,
    diagnostics: Sequence[Diagnostic] = (),
    nothing: bool = False,
) -> None:
    """Raise where too little was understood: nothing at all, or less than is asked for.

    Args:
        coverage: Counts of statements.
        strict: Everything has to be understood.
        min_coverage: So many percent have to be.
        hint: Where to look for the reason.
        diagnostics: What was found on reading; errors among them count with ``strict``.
        nothing: Nothing at all suffices without ``strict`` and ``min_coverage``.

    Raises:
        EvidenceError: Too little was understood (``evidence.coverage``).
    """
    from govtool.answers.coverage import shortfall

    errors = sum(d.severity == "error" for d in diagnostics)
    problem = shortfall(coverage, strict=strict, min_coverage=min_coverage, errors=errors, nothing=nothing)
    if problem:
        raise EvidenceError(problem, code="evidence.coverage", hint=hint)


def at_least(threshold: str, levels: Sequence[str], noun: str) -> tuple[str, ...]:
    """The levels that count for ``--fail-on``: the threshold and all worse ones; none for ``none``.

    Args:
        threshold: One of ``levels``, or ``none``.
        levels: From the worst to the mildest.
        noun: What a level is called: ``verdict``, ``severity``.

    Raises:
        UnknownNameError: There is no such level (``usage.unknown-<noun>``).
    """
    known = ("none", *levels)
    if threshold not in known:
        raise UnknownNameError.of_few(noun, threshold, known)
    return tuple(known[1 : known.index(threshold) + 1])
