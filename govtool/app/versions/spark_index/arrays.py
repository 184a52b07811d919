"""All arrays of an index, from the frames of its build."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from govtool.app.versions.spark_index.datasets import STATED
from govtool.app.versions.spark_index.digesting import dataset_digests
from govtool.graph.builder.statement_arrays import EVIDENCE
from govtool.graph.codes import (
    APPEND,
    DECLARE,
    DELETE,
    DROP,
    ELIDED,
    HIDDEN,
    PARTIAL,
    RENAME,
    REPLACE,
    ROW_MAKER,
    WHOLE,
)
from govtool.model.derivation import HIDDEN as UNKNOWN
from govtool.model.derivation import ROWS

if TYPE_CHECKING:
    from govtool.app.versions.spark_index.frames import Frames
    from govtool.app.versions.spark_index.words import Words
    from govtool.app.versions.spark_index.writing import ArrayFiles


def take_arrays(frames: Frames, words: Words, files: ArrayFiles) -> dict[str, Any]:
    """Take in all arrays; returns what the index says of itself."""
    files.take_texts(frames)
    _edges(frames, files)
    _nodes(frames, files)
    _derivations(frames, files)
    _datasets(frames, words, files)
    _names(frames, words, files)
    (row,) = frames.sql(
        f"""
        SELECT count_if(flags & {ELIDED} = 0) AS datasets,
            coalesce(sum(IF(flags & {ELIDED} = 0, tops, 0L)), 0L) AS columns,
            coalesce(max(opaque), 0L) > 0 AS opaque FROM {{dt}}"""
    ).collect()
    return {
        "datasets": row["datasets"],
        "columns": row["columns"],
        "nodes": frames["n"].count(),
        "edges": frames["edge"].count(),
        "derivations": frames.sql(f"SELECT did FROM {{dv}} WHERE mode_code <> {DROP}").count(),
        "opaque_rows": row["opaque"],
    }


def _edges(frames: Frames, files: ArrayFiles) -> None:
    names = {
        "start": "edge_source", "stop": "edge_target", "tag": "edge_tag", "label": "edge_label", "arm": "edge_arm",
        "did": "edge_derivation",
    }  # fmt: skip
    files.take(frames, frames["edge"], names, ["edge"])
    files.take(frames, frames["edge"], {"edge": "backward_edge"}, ["stop", "edge"])
    files.take(frames, frames["label"], {"functions": "label_functions", "reason": "label_reason"}, ["label"])
    frames.put(
        "named",
        """
        SELECT r.node, r.did, n.node AS rows FROM {ref} r JOIN {n} n ON r.made = n.ds AND n.is_rows""",
    )
    names = {"node": "reference", "did": "reference_derivation", "rows": "reference_rows"}
    files.take(frames, frames["named"], names, ["node", "did", "rows"])


def _nodes(frames: Frames, files: ArrayFiles) -> None:
    declares = f"d.mode_code = {DECLARE}"
    stated = STATED.format(rank=f"CAST({declares} AS int)", value="o.type")
    frames.put(
        "nt",
        f"""
        SELECT n.*, coalesce(t.stated.value, 0L) AS type, coalesce(t.declared, 0L) AS declared,
            coalesce(a.edges, 0L) AS leaving, coalesce(b.edges, 0L) AS entering
        FROM {{n}} n
            LEFT JOIN (SELECT o.node, max({stated}) AS stated, max(CAST({declares} AS long)) AS declared
                FROM {{out}} o JOIN {{dv}} d ON o.did = d.did WHERE o.type > 0 GROUP BY o.node) t ON n.node = t.node
            LEFT JOIN (SELECT start, count(*) AS edges FROM {{edge}} GROUP BY start) a ON n.node = a.start
            LEFT JOIN (SELECT stop, count(*) AS edges FROM {{edge}} GROUP BY stop) b ON n.node = b.stop""",
        keep=True,
    )
    names = {
        "path": "node_path", "ds": "node_dataset", "type": "node_type", "declared": "node_declared",
        "leaving": "forward", "entering": "backward",
    }  # fmt: skip
    files.take(frames, frames["nt"], names, ["node"], ["forward", "backward"])
    files.take(frames, frames.sql("SELECT node FROM {n} WHERE open"), {"node": "unknown"}, ["node"])
    nested = frames.sql("SELECT node, parent FROM {n} WHERE parent IS NOT NULL")
    files.take(frames, nested, {"node": "nested", "parent": "nested_parent"}, ["node"])
    files.take(frames, nested, {"parent": "container", "node": "container_child"}, ["parent", "node"])


def _derivations(frames: Frames, files: ArrayFiles) -> None:
    frames.put(
        "output",
        """
        SELECT did, node FROM {out} UNION SELECT e.did, e.stop FROM {edge} e JOIN {n} n ON e.stop = n.node
            AND NOT n.is_rows LEFT ANTI JOIN {out} o ON e.did = o.did""",
        keep=True,
    )
    files.take(frames, frames["output"], {"node": "output_node"}, ["did", "node"])
    frames.put(
        "tops",
        "SELECT ds, count_if(NOT is_rows AND parent IS NULL AND NOT open) AS tops FROM {n} GROUP BY ds",
        keep=True,
    )
    key = ("source", "file", "session", "first_seen", "line", "fingerprint")
    frames.number("st", f"SELECT DISTINCT {', '.join(key)} FROM {{dv}}", "statement", *key)
    same = " AND ".join(f"d.{name} = s.{name}" for name in key)
    frames.put(
        "dt",
        f"""
        SELECT d.*, s.statement, coalesce(o.outputs, 0L) AS outputs, coalesce(g.notes, 0L) AS notes,
            CASE WHEN d.mode_code IN ({REPLACE}, {RENAME})
                    OR (d.mode_code = {APPEND} AND o.covered > 0 AND o.covered >= t.tops) THEN {WHOLE}L
                WHEN d.mode_code IN ({APPEND}, {DELETE}) THEN {ROW_MAKER}L ELSE {PARTIAL}L END AS whole
        FROM {{dv}} d JOIN {{st}} s ON {same} JOIN {{tops}} t ON d.made = t.ds
            LEFT JOIN (SELECT o.did, count(*) AS outputs,
                    count_if(NOT n.is_rows AND n.parent IS NULL AND NOT n.open) AS covered
                FROM {{output}} o JOIN {{n}} n ON o.node = n.node GROUP BY o.did) o ON d.did = o.did
            LEFT JOIN (SELECT did, count(*) AS notes FROM {{g}} GROUP BY did) g ON d.did = g.did""",
        keep=True,
    )
    shown = frames.sql("SELECT *, CAST(mode_code AS long) AS code FROM {dt}")
    names = {name: f"derivation_{name}" for name in EVIDENCE}
    names |= {
        "made": "derivation_target", "code": "derivation_mode", "statement": "derivation_statement",
        "whole": "derivation_whole", "outputs": "output", "notes": "diagnostic",
    }  # fmt: skip
    files.take(frames, shown, names, ["did"], ["output", "diagnostic"])
    files.take(frames, frames["g"], {"json": "diagnostic_json"}, ["did", "pos"])
    live = frames.sql("SELECT did, statement, made FROM {dt} WHERE alive")
    files.take(frames, live, {"did": "statement_derivation"}, ["statement", "did"])
    files.take(frames, live, {"did": "maker_derivation"}, ["made", "did"])
    counted = frames.sql("SELECT statement, count_if(alive) AS derivations FROM {dt} GROUP BY statement")
    files.take(frames, counted, {"derivations": "statement"}, ["statement"], ["statement"])


def _datasets(frames: Frames, words: Words, files: ArrayFiles) -> None:
    frames.put(
        "dt",
        """
        SELECT s.ds, s.fid, s.text, s.kind, s.flags, t.tops, c.nodes, coalesce(m.makers, 0L) AS makers,
            coalesce(x.edges, 0L) AS opaque
        FROM {ds} s JOIN {tops} t ON s.ds = t.ds
            JOIN (SELECT ds, count(*) AS nodes FROM {n} GROUP BY ds) c ON s.ds = c.ds
            LEFT JOIN (SELECT made, count(*) AS makers FROM {dv} WHERE alive GROUP BY made) m ON s.ds = m.made
            LEFT JOIN (SELECT n.ds, count(*) AS edges FROM {edge} e JOIN {n} n ON e.start = n.node AND n.is_rows
                WHERE NOT e.read GROUP BY n.ds) x ON s.ds = x.ds""",
        keep=True,
    )
    names = {
        "fid": "dataset_name", "kind": "dataset_kind", "flags": "dataset_flags", "tops": "dataset_columns",
        "nodes": "dataset_base", "makers": "maker", "opaque": "dataset_opaque",
    }  # fmt: skip
    files.take(frames, frames["dt"], names, ["ds"], ["dataset_base", "maker"])
    frames.put("digest", dataset_digests(frames, words))
    halves = frames.sql(
        "SELECT ds, 1L AS half, digest_1 AS value FROM {digest} UNION ALL SELECT ds, 2L, digest_2 FROM {digest}"
    )
    files.take(frames, halves, {"value": "dataset_digest"}, ["ds", "half"])


def _names(frames: Frames, words: Words, files: ArrayFiles) -> None:
    keyed = "number long, key string"
    shown = frames.sql(f"SELECT ds, text FROM {{dt}} WHERE flags & {HIDDEN} = 0")
    files.take(frames, shown.mapInArrow(_suffix_keys, keyed), {"number": "dataset_suffix"}, ["key", "number"])
    frames.put(
        "shown",
        f"""
        SELECT n.node, n.path FROM {{n}} n JOIN {{dt}} d ON n.ds = d.ds AND d.flags & {HIDDEN} = 0
        WHERE n.path NOT IN ({words.add(ROWS)}, {words.add(UNKNOWN)})""",
    )
    paths = frames.sql("SELECT t.id, t.text FROM (SELECT DISTINCT path FROM {shown}) p JOIN {t2} t ON p.path = t.id")
    frames.number("suffix", paths.mapInArrow(_suffix_keys, keyed), "place", "key", "number")
    frames.put(
        "found",
        """
        SELECT s.place, s.number, c.nodes FROM {suffix} s
            JOIN (SELECT path, count(*) AS nodes FROM {shown} GROUP BY path) c ON s.number = c.path""",
    )
    files.take(frames, frames["found"], {"number": "path_suffix", "nodes": "path"}, ["place"], ["path"])
    nodes = frames.sql("SELECT s.place, n.node FROM {suffix} s JOIN {shown} n ON s.number = n.path")
    files.take(frames, nodes, {"node": "path_node"}, ["place", "node"])


def _suffix_keys(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    from govtool.arrays.suffix import suffix_key

    for batch in batches:
        keys = [suffix_key(text) for text in batch.column(1).to_pylist()]
        yield pa.RecordBatch.from_arrays([batch.column(0), pa.array(keys, pa.string())], names=["number", "key"])
