"""Baselines: findings that were there when a policy was introduced, accepted by fingerprint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from govtool.errors import UsageError
from govtool.policy.finding import Finding, RuleVerdict

SCHEMA = "baseline/1"


def read_baseline(path: Path) -> frozenset[str]:
    """The fingerprints of a baseline file.

    Raises:
        UsageError: It cannot be read, or is no baseline (``usage.baseline``).
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(value, Mapping) or value.get("schema") != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        return frozenset(str(entry["fingerprint"]) for entry in value["findings"])
    except OSError as error:
        raise UsageError(
            (error.strerror or str(error)).lower(),
            code="usage.baseline",
            location=str(path),
            hint="govtool check --update-baseline FILE makes one",
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"not a baseline: {error}", code="usage.baseline", location=str(path)) from error


def accepted(findings: Iterable[Finding], known: frozenset[str]) -> tuple[Finding, ...]:
    """Mark the findings that a baseline holds."""
    return tuple(replace(f, accepted=True) if f.fingerprint in known and not f.failed else f for f in findings)


def baseline_object(findings: Iterable[Finding]) -> dict[str, object]:
    """The JSON value of a baseline with the findings that are neither waived nor held."""
    return {"schema": SCHEMA, "findings": list(_entries(findings))}


def _entries(findings: Iterable[Finding]) -> Iterator[dict[str, str]]:
    open_ = [f for f in findings if f.verdict in (RuleVerdict.VIOLATED, RuleVerdict.UNKNOWN) and not f.failed]
    for finding in sorted(open_, key=lambda f: (f.rule, f.column, f.source, f.state)):
        yield {
            "fingerprint": finding.fingerprint,
            "rule": finding.rule,
            "source": finding.source,
            "column": finding.column,
            "state": finding.state,
        }
