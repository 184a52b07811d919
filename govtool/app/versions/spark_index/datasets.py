"""Derivations and datasets of the graph: which count, what each makes, what datasets there are and of which kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from govtool.app.versions.spark_index import folding
from govtool.graph.builder.fold import KEEPS, REFILLS, REMAKES
from govtool.graph.codes import APPEND, DECLARE, DROP, ELIDED, HIDDEN, MODES
from govtool.model.derivation import HIDDEN as UNKNOWN
from govtool.model.derivation import ROWS

if TYPE_CHECKING:
    from govtool.app.versions.spark_index.frames import Frames
    from govtool.app.versions.spark_index.words import Words

FILLS = ("insert", "copy", "load")
STATED = "struct({rank} AS rank, d.st_source, d.st_what, d.st_seen, d.line, {value} AS value)"
"""Of several statements about one thing the greatest counts, as ``govtool.graph.builder.last_stated`` says."""


def prepare(frames: Frames, words: Words) -> None:
    """Put ``d0``, derivations with codes in place of words, and ``m``, the datasets that are mentioned."""
    modes = {row["mode"] for row in frames.sql("SELECT DISTINCT mode FROM {d}").collect()}
    kinds = {row["kind"] for row in frames.sql("SELECT DISTINCT kind FROM {d}").collect()}
    texts = words.texts(modes | kinds)
    words.look_up(["select", "temporary", "external", ROWS, UNKNOWN, "sql", ""])
    select, temporary = words.add("select"), words.add("temporary")
    codes = " ".join(
        f"WHEN {number} THEN {MODES.index(texts[number]) if texts.get(number) in MODES else APPEND}"
        for number in sorted(modes)
    )
    fills = [str(number) for number in sorted(kinds) if texts.get(number, "").startswith(FILLS)]
    empty = words.find("") or -1

    def plain(column: str) -> str:
        return f"IF({column} = {empty}, 0L, {column})"

    frames.put(
        "d0",
        f"""
        SELECT *, CASE mode {codes or f"WHEN -1 THEN {APPEND}"} ELSE {APPEND} END AS mode_code,
            IF(session > 0, session, file) AS what, session > 0 AS flag, target_kind = {temporary} AS temporary,
            CASE WHEN kind = {select} THEN {KEEPS} WHEN kind IN ({", ".join(fills) or "-1"}) THEN {REFILLS}
                ELSE {REMAKES} END AS resets,
            {plain("source")} AS st_source, {plain("first_seen")} AS st_seen,
            IF({plain("session")} > 0, session, {plain("file")}) AS st_what
        FROM {{d}}""",
    )
    frames.put(
        "m",
        """
        SELECT did, pos, 0L AS isref, source_dataset AS dataset FROM {e}
        UNION ALL SELECT did, pos, 1L, dataset FROM {r}""",
    )


def settle(frames: Frames, words: Words) -> None:
    """Put ``ds``, the datasets in order, and ``dv``, derivations with what they make."""
    folded = folding.fold_scripts(frames)
    if not folded:
        frames.put("folded", frames.spark.createDataFrame([], "what long, did long, pos long, isref long, "
                                                              "name long, gen long, source long"))  # fmt: skip
    renamed = _temporary_names(frames, words) if folded else []
    external = words.add("external")
    temporary = words.add("temporary")
    frames.put("renamed", frames.spark.createDataFrame(renamed, "name long, gen long, fid long, own string"))
    frames.put(
        "d1",
        f"""
        SELECT d.*, d.mode_code <> {DROP} AND k.did IS NULL AS alive, coalesce(f.name, d.target) AS t_name,
            coalesce(f.gen, 0L) AS t_gen
        FROM {{d0}} d LEFT JOIN (SELECT did, name, gen FROM {{folded}} WHERE what = {folding.MADE}) f ON d.did = f.did
            LEFT JOIN (SELECT did FROM {{folded}} WHERE what = {folding.KILLED}) k ON d.did = k.did""",
        keep=True,
    )
    frames.put("ends", f"SELECT name, gen FROM {{folded}} WHERE what = {folding.GENERATION}")
    frames.put(
        "named",
        """
        SELECT n.name, n.gen, coalesce(r.fid, n.name) AS fid, coalesce(r.own, t.text) AS text
        FROM (SELECT dataset AS name, 0L AS gen FROM {m} UNION SELECT target, 0L FROM {d0} UNION SELECT * FROM {ends}) n
            JOIN {t} t ON n.name = t.id LEFT JOIN {renamed} r ON n.name = r.name AND n.gen = r.gen""",
    )
    frames.number("ds0", "SELECT *, gen > 0 AS later FROM {named}", "ds", "text", "later", "gen", "name")
    frames.put(
        "dv",
        "SELECT d.*, s.ds AS made FROM {d1} d JOIN {ds0} s ON d.t_name = s.name AND d.t_gen = s.gen",
        keep=True,
    )
    stated = STATED.format(
        rank=f"2 * CAST(target_kind <> {temporary} AS int) + CAST(mode_code <> {DECLARE} AS int)", value="d.target_kind"
    )
    hidden = ELIDED | HIDDEN
    frames.put(
        "ds",
        f"""
        SELECT s.ds, s.name, s.gen, s.fid, s.text, coalesce(k.stated.value, {external}L) AS kind,
            IF(s.gen > 0 OR x.name IS NOT NULL OR k.stated.value = {temporary}, {hidden}L, 0L) AS flags
        FROM {{ds0}} s
            LEFT JOIN (SELECT made, max({stated}) AS stated FROM {{dv}} d WHERE alive GROUP BY made) k ON s.ds = k.made
            LEFT JOIN (SELECT DISTINCT name, gen FROM {{folded}} WHERE what = {folding.DROPPED}) x
                ON s.name = x.name AND s.gen = x.gen""",
        keep=True,
    )


def _temporary_names(frames: Frames, words: Words) -> list[tuple[int, int, int, str]]:
    """New names of temporary tables that scripts of several sources have in common; the driver sees these only."""
    from govtool.graph.builder.columns import Strings
    from govtool.graph.builder.name_arrays import temporary_names

    frames.put("made", f"SELECT DISTINCT name, gen, source FROM {{folded}} WHERE what = {folding.TEMPORARY}")
    shared = frames.sql(
        """
        SELECT m.* FROM {made} m JOIN (
            SELECT name FROM {made} GROUP BY name HAVING count(DISTINCT source) > 1) s ON m.name = s.name"""
    ).collect()
    if not shared:
        return []
    # In the order of the numbers of datasets: ended generations are numbered behind all others.
    found = sorted({(row["gen"], row["name"]) for row in shared})
    texts = words.texts({number for row in shared for number in (row["name"], row["source"])})
    strings = Strings()
    names = [strings.add(texts[name]) for _, name in found]
    place = {key: number for number, key in enumerate(found)}
    order = sorted({row["source"] for row in shared})
    sources = {number: strings.add(texts[number]) for number in order}
    made = {(place[row["gen"], row["name"]], sources[row["source"]]) for row in shared}
    after = temporary_names(strings, names, made)
    words.look_up(strings.texts)
    for text in strings.texts[1:]:  # in the order in which they were made
        words.add(text)
    return [
        (name, gen, words.add(strings.texts[new]), strings.texts[new])
        for (gen, name), new in zip(found, after, strict=True)
    ]
