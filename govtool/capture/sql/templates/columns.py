"""Columns of relations as templates see them: dbt's ``Column``."""

from __future__ import annotations

from dataclasses import dataclass

from govtool.names import unquote

_UPPER = frozenset({"snowflake", "oracle"})
_TEXT = ("char", "text", "string", "clob")
_INTEGER = ("int", "serial", "long")
_FLOAT = ("float", "double", "real")
_NUMERIC = ("numeric", "decimal", "number", "money")


@dataclass(frozen=True, slots=True)
class TemplateColumn:
    """A column of a relation, as dbt's adapters give it."""

    name: str
    """As the warehouse writes it: in upper case where names without quotes are."""
    dtype: str = ""
    """As written; empty if it is not known."""

    @property
    def column(self) -> str:
        """The name."""
        return self.name

    @property
    def quoted(self) -> str:
        """The name in quotes."""
        return '"' + self.name.replace('"', '""') + '"'

    @property
    def data_type(self) -> str:
        """The type."""
        return self.dtype or "varchar"

    def _is(self, words: tuple[str, ...]) -> bool:
        return any(word in self.dtype.lower() for word in words)

    def is_string(self) -> bool:
        """Return whether it holds text."""
        return not self.dtype or self._is(_TEXT)

    def is_number(self) -> bool:
        """Return whether it holds numbers."""
        return self.is_integer() or self.is_float() or self.is_numeric()

    def is_integer(self) -> bool:
        """Return whether it holds whole numbers."""
        return self._is(_INTEGER) and not self._is(("interval", "point"))

    def is_float(self) -> bool:
        """Return whether it holds binary fractions."""
        return self._is(_FLOAT)

    def is_numeric(self) -> bool:
        """Return whether it holds decimal fractions."""
        return self._is(_NUMERIC)

    def string_type(self, size: int = 256) -> str:
        """A text type."""
        return f"varchar({size})"

    def __str__(self) -> str:
        return self.name


def warehouse_name(canonical: str, dialect: str) -> str:
    """The name that a warehouse shows of a column with this canonical text."""
    bare = unquote(canonical)
    return bare.upper() if dialect in _UPPER and bare == canonical else bare
