"""Lazy tracing: from rows of a result to the input rows behind them, and forward, by rewriting the recorded plan.

A plan falls into **segments** at its boundaries: operators whose output rows stand for several input rows (groups,
DISTINCT, set operations, windows, subqueries). Within a segment every row carries the ids of the input rows it comes
from; across a boundary a **link** matches values that the row keeps: group keys, compared columns, outer references.
:mod:`rules <govtool.records.trace.rules>` has one function an operator; :mod:`back <govtool.records.trace.back>` and
:mod:`forward <govtool.records.trace.forward>` follow the links.
"""
