"""Selective replay: a recorded plan evaluated again over changed inputs, as far as the change reaches.

:mod:`changes <govtool.records.replay.changes>` edits the leaves of a plan.
:mod:`reach <govtool.records.replay.reach>` finds the groups and partitions that the edit can change.
:mod:`compare <govtool.records.replay.compare>` evaluates these, and names the rows that are gone, changed and new.
"""
