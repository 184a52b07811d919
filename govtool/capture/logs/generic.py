"""JSON lines and CSV of any shape, by ``--map text=query,started_at=ts,…`` or by the names that most logs use."""

from __future__ import annotations

from govtool.capture.logs.mapping import GENERIC, Preset

PRESET = Preset("generic", "", GENERIC, tuple(frozenset({name}) for name in GENERIC["text"]))
