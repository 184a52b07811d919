"""Breaks of lineage: user code that makes whole relations, and unknown parts of plans."""

from __future__ import annotations

from govtool.capture.spark import plan as p

UNKNOWN = "break.operator"
"""The break that a part of a plan is which is not known: what comes out of it is opaque."""

BREAKS = {
    "MapInPandas": ("break.map-in-pandas", "mapInPandas"),
    "MapInArrow": ("break.map-in-arrow", "mapInArrow"),
    "PythonMapInArrow": ("break.map-in-arrow", "mapInArrow"),
    "FlatMapGroupsInPandas": ("break.apply-in-pandas", "applyInPandas"),
    "FlatMapGroupsInArrow": ("break.apply-in-arrow", "applyInArrow"),
    "FlatMapCoGroupsInPandas": ("break.apply-in-pandas", "cogroup.applyInPandas"),
    "FlatMapCoGroupsInArrow": ("break.apply-in-arrow", "cogroup.applyInArrow"),
    "FlatMapGroupsInPandasWithState": ("break.apply-in-pandas", "applyInPandasWithState"),
    "TransformWithState": ("break.transform-with-state", "transformWithState"),
    "TransformWithStateInPandas": ("break.transform-with-state", "transformWithState"),
    "TransformWithStateInPySpark": ("break.transform-with-state", "transformWithState"),
    "ScriptTransformation": ("break.transform-script", "TRANSFORM … USING"),
    "MapPartitions": ("break.typed", "mapPartitions"),
    "MapElements": ("break.typed", "map"),
    "FlatMapGroupsWithState": ("break.typed", "mapGroupsWithState"),
    "MapGroups": ("break.typed", "mapGroups"),
    "CoGroup": ("break.typed", "cogroup"),
    "MapPartitionsInR": ("break.typed", "dapply"),
}
"""Code of the user's, as nodes of logical and physical plans: the break that each is, and what users call it."""


def unknown(message: str, children: tuple[p.Node, ...] = (), outputs: tuple[p.Named, ...] = ()) -> p.LineageBreak:
    """A relation that is not known, or does not tell what it does."""
    return p.LineageBreak(children, outputs, UNKNOWN, message)
