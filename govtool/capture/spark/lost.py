"""Code of the user's that makes whole relations: what comes out of it has no way to what went in."""

from __future__ import annotations

LOST = {
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
"""Nodes of logical and physical plans: the break that each is, and what users call it."""
