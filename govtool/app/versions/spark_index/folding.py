"""What scripts drop, replace, rename or make for a while: folded by the local code, in one task.

The task gets what speaks of a dataset of which some script says such a thing, four numbers an edge; the rest of the
graph never comes together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from govtool.app.versions.spark_index.frames import Frames, arrow_rows, long_schema, number_columns
from govtool.graph.codes import DELETE, DROP, RENAME, REPLACE

_FLAGS = ("resets", "temporary", "makes")
_INPUT = ("k", "isref", "did", "pos", "name", "mode", "source", "what", "flag", "seen", "line", *_FLAGS)
_OUTPUT = ("what", "did", "pos", "isref", "name", "gen", "source")
KILLED, MADE, MENTIONED, DROPPED, GENERATION, TEMPORARY = range(6)
"""What a row of the outcome says: a derivation that no longer counts; the ended generation that one makes; that an edge
or reference comes from; a dataset that is no more; an ended generation; a temporary table and the source that makes it.
"""


def fold_scripts(frames: Frames) -> bool:
    """Put the frame ``folded``; returns whether there is anything in it.

    Args:
        frames: With ``d0``: derivations with ``mode_code``, ``resets``, ``temporary`` and ``what``, a session or file;
            and ``m``: the datasets that edges and references come from.
    """
    remade = f"(mode_code = {REPLACE} AND resets > 0) OR mode_code = {RENAME}"
    frames.put(
        "w",
        f"""
        SELECT DISTINCT target AS dataset FROM (
            SELECT target FROM {{d0}} GROUP BY source, what, flag, target
            HAVING (max({remade}) AND count(*) > 1) OR max(mode_code = {DROP} OR temporary))
        UNION SELECT m.dataset FROM {{m}} m JOIN {{d0}} d ON m.did = d.did
        WHERE d.mode_code = {RENAME} AND m.dataset <> d.target""",
        keep=True,
    )
    if not frames["w"].take(1):
        return False
    frames.put("mw", "SELECT m.* FROM {m} m JOIN {w} w ON m.dataset = w.dataset", keep=True)
    frames.put(
        "makers",
        f"""
        SELECT DISTINCT m.did FROM {{m}} m LEFT SEMI JOIN (SELECT did FROM {{d0}} WHERE mode_code = {DELETE}) d
            ON m.did = d.did WHERE m.isref = 0""",
    )
    wanted = frames.sql(
        f"""
        SELECT 0L AS k, 0L AS isref, d.did, 0L AS pos, d.target AS name, d.mode_code AS mode, d.source, d.what,
            CAST(d.flag AS long) AS flag, d.first_seen AS seen, d.line, CAST(d.resets AS long) AS resets,
            CAST(d.temporary AS long) AS temporary,
            CAST(d.mode_code <> {DELETE} OR made.did IS NOT NULL AS long) AS makes
        FROM {{d0}} d LEFT JOIN {{makers}} made ON d.did = made.did LEFT SEMI JOIN (
            SELECT d.did FROM {{d0}} d JOIN {{w}} w ON d.target = w.dataset UNION SELECT did FROM {{mw}}) s
            ON d.did = s.did
        UNION ALL SELECT 1L, isref, did, pos, dataset, 0L, 0L, 0L, 0L, 0L, 0L, 0L, 0L, 0L FROM {{mw}}"""
    )
    together = wanted.repartition(1).sortWithinPartitions("k", "isref", "did", "pos")
    frames.put("folded", together.mapInArrow(_fold, long_schema(_OUTPUT)), keep=True)
    return True


def _fold(batches: Iterator[Any]) -> Iterator[Any]:
    """The rows of all that must be folded, in order, to the outcome."""
    import numpy as np

    from govtool.graph.builder.columns import numbered
    from govtool.graph.builder.fold import fold

    parts: dict[str, list[Any]] = {name: [np.empty(0, np.int64)] for name in _INPUT}
    for batch in batches:
        for name, values in number_columns(batch).items():
            parts[name].append(values)
    rows = {name: np.concatenate(values) for name, values in parts.items()}
    made = rows["k"] == 0
    d = {name: values[made] for name, values in rows.items()}
    e = {name: values[~made] for name, values in rows.items()}
    names = np.unique(rows["name"])
    target, source = np.searchsorted(names, d["name"]), np.searchsorted(names, e["name"])
    owner = np.searchsorted(d["did"], e["did"])
    group = numbered(d["source"], d["what"], d["flag"])
    time = numbered(d["seen"], d["line"])
    n = len(names)
    temporary = d["temporary"] > 0
    makes = d["makes"] > 0
    found = fold(target, d["mode"].astype(np.uint8), group, time, d["resets"], temporary, makes, owner, source, n)
    origin = np.concatenate([np.arange(n), np.array(found.origin, np.int64)])
    generation = np.concatenate([np.zeros(n, np.int64), np.arange(1, len(found.origin) + 1)])

    def outcome(what: int, count: int, **columns: Any) -> Any:
        zero = np.zeros(count, np.int64)
        return arrow_rows(_OUTPUT, [zero + what, *(zero + columns.get(name, 0) for name in _OUTPUT[1:])])

    def named(numbers: Any) -> dict[str, Any]:
        return {"name": names[origin[numbers]], "gen": generation[numbers]}

    killed = np.flatnonzero(~found.alive & (d["mode"] != DROP))
    yield outcome(KILLED, len(killed), did=d["did"][killed])
    moved = np.flatnonzero(found.target != target)
    yield outcome(MADE, len(moved), did=d["did"][moved], **named(found.target[moved]))
    moved = np.flatnonzero(found.source != source)
    where = {name: e[name][moved] for name in ("did", "pos", "isref")}
    yield outcome(MENTIONED, len(moved), **where, **named(found.source[moved]))
    dropped = np.array(sorted(found.dropped), np.int64)
    yield outcome(DROPPED, len(dropped), **named(dropped))
    ended = np.arange(n, len(origin))
    yield outcome(GENERATION, len(ended), **named(ended))
    for_a_while = np.flatnonzero(found.alive & temporary)
    yield outcome(TEMPORARY, len(for_a_while), source=d["source"][for_a_while], **named(found.target[for_a_while]))
