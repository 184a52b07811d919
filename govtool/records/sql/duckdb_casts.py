"""Casts in DuckDB's SQL that give what Spark gives, or an error."""

from __future__ import annotations

from govtool.records.plan import types as t

GUARD = "govtool: not exact in DuckDB"
"""The prefix of the message of an error that a guard raised."""


def cast_template(source: t.Type, target: t.Type, mode: str, utc: bool) -> str | None:
    """A template of a cast, or None where Spark's result is another."""
    plain = "CAST({part} AS {kind})"
    if source == t.BOOLEAN and target in (t.INTEGER, t.LONG):
        return plain
    if source in t.INTEGRAL:
        return plain if target in (*t.INTEGRAL, *t.FLOATS, t.STRING) or isinstance(target, t.Decimal) else None
    if isinstance(source, t.Decimal):
        return _from_decimal(source, target)
    if source in t.FLOATS:
        if target in t.FLOATS:
            return plain
        return "CAST(trunc({part}) AS {kind})" if target in (t.INTEGER, t.LONG) and mode == "ansi" else None
    # Only texts of a few digits are surely read alike; of any other, DuckDB may make what Spark does not.
    if source == t.STRING and target in (t.INTEGER, t.LONG):
        digits = 9 if target == t.INTEGER else 18
        test = "NOT regexp_full_match({part}, '[+-]?[0-9]{{1," + str(digits) + "}}')"
        return f"(CASE WHEN {test} THEN error('{{guard}}: a cast of text') ELSE {plain} END)"
    if source == t.DATE and target == t.STRING:
        return "strftime({part}, '%Y-%m-%d')"
    if {source, target} == {t.DATE, t.TIMESTAMP} and utc:
        return plain
    return None


def _from_decimal(source: t.Decimal, target: t.Type) -> str | None:
    if isinstance(target, t.Decimal):
        return "CAST({part} AS {kind})"
    if target == t.DOUBLE and source.precision <= 15:
        return "CAST({part} AS {kind})"
    if target in (t.INTEGER, t.LONG):
        return "CAST(trunc({part}) AS {kind})"
    return None
