"""Nodes and edges of the graph, numbered as the local build numbers them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from govtool.app.versions.spark_index import folding
from govtool.graph.codes import KIND_MASK
from govtool.model.derivation import HIDDEN as UNKNOWN
from govtool.model.derivation import ROWS
from govtool.model.kinds import EdgeKind

if TYPE_CHECKING:
    from govtool.app.versions.spark_index.frames import Frames
    from govtool.app.versions.spark_index.words import Words

READ = int(EdgeKind.READ)
STATED_EDGE, ADDED_READ, SPELLED_OUT = range(3)
"""The order of the edges of a derivation: those that were stated, ``read`` edges, those of open stars."""


def edges_with_reads(frames: Frames, words: Words) -> None:
    """Put ``e1``, the edges that count with their labels; the ``read`` edges that are missing are among them."""
    rows = words.add(ROWS)
    frames.put(
        "e0",
        f"""
        SELECT e.did, {STATED_EDGE} AS o1, e.pos AS o2, s.ds AS src, d.made AS tgt, e.source_path AS sp,
            e.target_path AS tp, e.functions, e.reason, e.arm, e.tag
        FROM {{e}} e JOIN {{dv}} d ON e.did = d.did AND d.alive
            LEFT JOIN (SELECT did, pos, name, gen FROM {{folded}} WHERE what = {folding.MENTIONED} AND isref = 0) f
                ON e.did = f.did AND e.pos = f.pos
            JOIN {{ds0}} s ON coalesce(f.name, e.source_dataset) = s.name AND coalesce(f.gen, 0L) = s.gen""",
        keep=True,
    )
    frames.put(
        "ref0",
        f"""
        SELECT r.did, r.pos, s.ds AS src, r.path, d.made FROM {{r}} r JOIN {{dv}} d ON r.did = d.did AND d.alive
            LEFT JOIN (SELECT did, pos, name, gen FROM {{folded}} WHERE what = {folding.MENTIONED} AND isref = 1) f
                ON r.did = f.did AND r.pos = f.pos
            JOIN {{ds0}} s ON coalesce(f.name, r.dataset) = s.name AND coalesce(f.gen, 0L) = s.gen""",
        keep=True,
    )
    frames.put(
        "missing",
        f"""
        SELECT m.did, {ADDED_READ} AS o1, m.src AS o2, m.src, d.made AS tgt, {rows}L AS sp, {rows}L AS tp,
            0L AS functions, 0L AS reason, 0L AS arm, {READ}L AS tag
        FROM (SELECT DISTINCT did, src FROM {{e0}} WHERE src <> tgt EXCEPT
            SELECT did, src FROM {{e0}} WHERE sp = {rows} AND tp = {rows} AND tag & {KIND_MASK} = {READ}) m
            JOIN {{dv}} d ON m.did = d.did""",
    )
    frames.put("e00", "SELECT * FROM {e0} UNION ALL SELECT * FROM {missing}", keep=True)
    frames.number("label", "SELECT DISTINCT functions, reason FROM {e00}", "label", "functions", "reason")
    frames.put(
        "e1",
        """
        SELECT e.*, l.label FROM {e00} e JOIN {label} l ON e.functions = l.functions AND e.reason = l.reason""",
        keep=True,
    )


def nodes(frames: Frames, words: Words) -> None:
    """Put ``n``, the nodes; ``e2``, ``ref`` and ``out``: edges, references, outputs with theirs."""
    rows = words.add(ROWS)
    frames.put(
        "out0",
        "SELECT o.did, o.pos, d.made, o.path, o.type FROM {o} o JOIN {dv} d ON o.did = d.did AND d.alive",
        keep=True,
    )
    frames.put(
        "end",
        f"""
        SELECT src AS ds, path FROM {{ref0}} UNION SELECT src, sp FROM {{e1}} UNION SELECT tgt, tp FROM {{e1}}
        UNION SELECT made, path FROM {{out0}} UNION SELECT ds, {rows}L FROM {{ds}}""",
        keep=True,
    )
    _containers(frames, words)
    frames.put(
        "ends",
        "SELECT ds, path FROM {end} UNION SELECT e.ds, u.up FROM {end} e JOIN {up} u ON e.path = u.path",
        keep=True,
    )
    _paths(frames, words)
    frames.number(
        "n0", "SELECT e.ds, p.place, p.path FROM {ends} e JOIN {p} p ON e.path = p.path", "node", "ds", "place"
    )
    frames.put(
        "n",
        f"""
        SELECT n.node, n.ds, n.path, a.node AS parent, n.path = {rows} AS is_rows, n.path = {words.add(UNKNOWN)} AS open
        FROM {{n0}} n LEFT JOIN (SELECT path, up FROM {{up}} WHERE level = 0) u ON n.path = u.path
            LEFT JOIN {{n0}} a ON n.ds = a.ds AND u.up = a.path""",
        keep=True,
    )
    frames.put(
        "e2",
        """
        SELECT e.did, e.o1, e.o2, 0L AS o3, 0L AS o4, a.node AS start, b.node AS stop, e.tag, e.arm, e.label
        FROM {e1} e JOIN {n} a ON e.src = a.ds AND e.sp = a.path JOIN {n} b ON e.tgt = b.ds AND e.tp = b.path""",
        keep=True,
    )
    found = "SELECT r.did, r.made, n.node FROM {ref0} r JOIN {n} n ON r.src = n.ds AND r.path = n.path"
    frames.put("ref", found, keep=True)
    found = "SELECT o.did, o.pos, o.type, n.node FROM {out0} o JOIN {n} n ON o.made = n.ds AND o.path = n.path"
    frames.put("out", found, keep=True)


def _containers(frames: Frames, words: Words) -> None:
    """Put ``up``: paths with those that contain them, and ``t2``, the texts with those of containers that are new."""
    known = frames.spark.createDataFrame(words.rows, "id long, text string")
    frames.put("t1", frames["t"].unionByName(known))
    used = frames.sql("SELECT t.id, t.text FROM (SELECT DISTINCT path FROM {end}) e JOIN {t1} t ON e.path = t.id")
    frames.put("above", used.mapInArrow(_ancestors, "path long, level long, text string"), keep=True)
    frames.put(
        "fresh",
        """
        SELECT a.text, min(struct(a.path, a.level)) AS first FROM {above} a LEFT ANTI JOIN {t1} t ON a.text = t.text
        GROUP BY a.text""",
    )
    words.skip(
        frames.number(
            "fresh1", "SELECT text, first.path AS a, first.level AS b FROM {fresh}", "id", "a", "b", first=words.end + 1
        )
    )
    for row in frames.sql(f"SELECT id, text FROM {{fresh1}} WHERE text = '{UNKNOWN}'").collect():
        words.know(row["id"], row["text"])
    before = len(words.rows)
    words.add(UNKNOWN)
    last = frames.spark.createDataFrame(words.rows[before:], "id long, text string")
    frames.put("t2", "SELECT id, text FROM {t1} UNION ALL SELECT id, text FROM {fresh1}")
    frames.put("t2", frames["t2"].unionByName(last), keep=True)
    frames.put("up", "SELECT a.path, a.level, t.id AS up FROM {above} a JOIN {t2} t ON a.text = t.text", keep=True)


def _ancestors(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    from govtool.graph.paths import ancestors

    for batch in batches:
        found = [
            (number, level, above)
            for number, text in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
            for level, above in enumerate(ancestors(text))
        ]
        columns = zip(*found, strict=True) if found else ((), (), ())
        kinds = (pa.int64(), pa.int64(), pa.string())
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)],
            names=["path", "level", "text"],
        )


def _paths(frames: Frames, words: Words) -> None:
    """Put ``p``: paths by their place in the order of nodes, with the one that contains each."""
    rows = words.add(ROWS)
    frames.put(
        "p0",
        f"""
        SELECT t.id AS path, t.text, t.id <> {rows} AS column
        FROM (SELECT DISTINCT path FROM {{ends}}) e JOIN {{t2}} t ON e.path = t.id""",
    )
    frames.number("p", "SELECT * FROM {p0}", "place", "column", "text")
    # Containers of containers: their texts were ancestors of a used path, so that all are in `above`.
    contained = frames.sql("SELECT p.path AS id, p.text FROM {p} p LEFT ANTI JOIN {up} u ON p.path = u.path")
    frames.put("above2", contained.mapInArrow(_ancestors, "path long, level long, text string"))
    frames.put(
        "up",
        """
        SELECT path, level, up FROM {up}
        UNION ALL SELECT a.path, a.level, t.id FROM {above2} a JOIN {t2} t ON a.text = t.text""",
        keep=True,
    )


def open_stars(frames: Frames) -> None:
    """Put ``e3``: all edges, with those that unresolved stars stand for (``govtool.graph.builder.stars``)."""
    frames.put(
        "star",
        """
        SELECT e.did, e.o1, e.o2, e.start, e.stop, e.tag, e.arm, e.label, a.ds AS src, b.ds AS tgt
        FROM {e2} e JOIN {n} a ON e.start = a.node AND a.open JOIN {n} b ON e.stop = b.node AND b.open""",
        keep=True,
    )
    if not frames["star"].take(1):
        frames.put("e3", frames["e2"])
        return
    frames.put(
        "stated",
        """
        SELECT did, start AS node FROM {e2} UNION SELECT did, stop FROM {e2} UNION SELECT did, node FROM {out}
        UNION SELECT did, node FROM {ref}""",
    )
    for name, side, own in (("carried", "src", "start"), ("received", "tgt", "stop")):
        frames.put(
            name,
            f"""
            SELECT s.*, n.node, n.path FROM {{star}} s JOIN {{n}} n ON s.{side} = n.ds AND NOT n.is_rows
                AND n.parent IS NULL AND n.node <> s.{own}
            LEFT ANTI JOIN {{stated}} m ON s.did = m.did AND n.node = m.node""",
            keep=True,
        )
    same = "c.did = r.did AND c.o1 = r.o1 AND c.o2 = r.o2 AND c.path = r.path"
    frames.put(
        "e3",
        f"""
        SELECT did, o1 * 0 + {SPELLED_OUT} AS o1, o1 AS p1, o2, o3, o4, start, stop, tag, arm, label FROM (
            SELECT c.did, c.o1, c.o2, 0L AS o3, c.node AS o4, c.node AS start, coalesce(r.node, c.stop) AS stop, c.tag,
                c.arm, c.label FROM {{carried}} c LEFT JOIN {{received}} r ON {same}
            UNION ALL SELECT r.did, r.o1, r.o2, 1L, r.node, r.start, r.node, r.tag, r.arm, r.label
                FROM {{received}} r LEFT ANTI JOIN {{carried}} c ON {same})
        UNION ALL SELECT did, o1, 0 AS p1, o2, o3, o4, start, stop, tag, arm, label FROM {{e2}}""",
    )


def edges(frames: Frames) -> None:
    """Put ``edge``: the edges in order."""
    if "p1" not in frames["e3"].columns:
        frames.put("e3", "SELECT *, 0 AS p1 FROM {e3}")
    frames.number(
        "edge",
        f"SELECT *, tag & {KIND_MASK} = {READ} AS read FROM {{e3}}",
        "edge", "start", "read", "stop", "did", "o1", "p1", "o2", "o3", "o4",
    )  # fmt: skip
