"""Frozen data that every layer speaks: edges, derivations, evidence, diagnostics."""

from __future__ import annotations

from govtool.model.derivation import HIDDEN, ROWS, ColumnRef, Counted, Derivation, Edge, OutputColumn, Statement
from govtool.model.diagnostic import Diagnostic
from govtool.model.kinds import CONTRIBUTED, KIND_BY_LABEL, ROW_SET, STEERING, VALUE_FLOW, EdgeKind

__all__ = [
    "CONTRIBUTED",
    "HIDDEN",
    "KIND_BY_LABEL",
    "ROWS",
    "ROW_SET",
    "STEERING",
    "VALUE_FLOW",
    "ColumnRef",
    "Counted",
    "Derivation",
    "Diagnostic",
    "Edge",
    "EdgeKind",
    "OutputColumn",
    "Statement",
]
