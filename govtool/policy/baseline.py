"""Baselines: findings that were there when a policy was introduced, accepted by fingerprint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from govtool.errors import UsageError
from govtool.policy.finding import Finding, RuleVerdict, exceeds

SCHEMA = "baseline/1"


class Accepted(NamedTuple):
    """What a baseline accepts of one finding; None where the file is of an earlier version."""

    verdict: str | None = None
    strength: str | None = None
    measured: int | None = None


def read_baseline(path: Path) -> dict[str, Accepted]:
    """What a baseline file accepts, by fingerprint.

    Raises:
        UsageError: It cannot be read, or is no baseline (``usage.baseline``).
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(value, Mapping) or value.get("schema") != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        return {
            str(entry["fingerprint"]): Accepted(
                entry.get("verdict"), entry.get("strength"), _size(entry.get("measured"))
            )
            for entry in value["findings"]
        }
    except OSError as error:
        raise UsageError(
            (error.strerror or str(error)).lower(),
            code="usage.baseline",
            location=str(path),
            hint="govtool check --update-baseline FILE makes one",
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"not a baseline: {error}", code="usage.baseline", location=str(path)) from error


def accepted(findings: Iterable[Finding], known: Mapping[str, Accepted]) -> tuple[Finding, ...]:
    """Mark the findings that a baseline holds, and those that are worse than what it holds."""
    return tuple(_marked(finding, known.get(finding.fingerprint)) for finding in findings)


def _marked(finding: Finding, before: Accepted | None) -> Finding:
    if before is None or finding.failed:
        return finding
    worse_than = exceeds(finding, before.verdict, before.strength, before.measured)
    return replace(finding, worse_than=worse_than) if worse_than else replace(finding, accepted=True)


def baseline_object(findings: Iterable[Finding]) -> dict[str, object]:
    """The JSON value of a baseline with the findings that are neither waived nor held."""
    return {"schema": SCHEMA, "findings": list(_entries(findings))}


def _size(value: object) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError("measured is not a number of members")
    return value


def _entries(findings: Iterable[Finding]) -> Iterator[dict[str, object]]:
    open_ = [f for f in findings if f.verdict in (RuleVerdict.VIOLATED, RuleVerdict.UNKNOWN) and not f.failed]
    for finding in sorted(open_, key=lambda f: (f.rule, f.column, f.source, f.state)):
        yield {
            "fingerprint": finding.fingerprint,
            "rule": finding.rule,
            "source": finding.source,
            "column": finding.column,
            "state": finding.state,
            "verdict": finding.verdict.label,
            **({"strength": finding.strength} if finding.strength else {}),
            **({} if finding.measured is None else {"measured": finding.measured}),
        }
