"""Query logs with all that makes folding them hard, for tests that compare one way of reading them with another."""

from __future__ import annotations

import csv
import gzip
import json
import random
from pathlib import Path

DIALECTS = ["postgres", "postgres", "postgres", "snowflake", "klingon"]
TABLES = [f"s{n % 3}.t{n}" for n in range(12)]


def write_logs(folder: Path, sessions: int = 120, seed: int = 7) -> Path:
    """Logs of several formats with sessions that go across files and pieces; seeded."""
    pick = random.Random(seed)
    folder.mkdir()
    rows = [row for number in range(sessions) for row in _session(f"s{number}", pick)]
    rows.sort(key=lambda row: (row["ts"], row["session_id"]))
    third = len(rows) // 3
    lines = [json.dumps(row) for row in rows[:third]]
    lines[5:5] = ["half {", '{"sql": 5}', '"no object"']
    (folder / "a.jsonl").write_text("\ufeff" + "\n".join(lines) + "\n", encoding="utf-8")
    (folder / "b.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows[third : 2 * third])).encode()))
    with (folder / "c.csv").open("w", newline="", encoding="utf-8") as file:
        names = list(dict.fromkeys(name for row in rows[2 * third :] for name in row))
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows[2 * third :])
    (folder / "d.sql").write_text("CREATE VIEW late AS SELECT * FROM s0.t0;\nSELECT x FROM late, s1.t1;\n")
    (folder / "e.txt").write_text("no log at all\n")
    (folder / "f.jsonl").write_text("")
    return folder


def _session(name: str, pick: random.Random) -> list[dict[str, object]]:
    dialect = pick.choice(DIALECTS)
    texts = list(_start(pick))
    for _ in range(pick.randrange(2, 9)):
        texts.extend(pick.choice(_SHAPES)(pick))
    rows: list[dict[str, object]] = []
    second = pick.randrange(40)
    for number, text in enumerate(texts):
        second += pick.randrange(2)  # many at the same time
        row: dict[str, object] = {
            "sql": text,
            "session_id": name,
            "user": f"u{pick.randrange(30)}",
            "ts": f"2026-02-01T10:{second // 60:02}:{second % 60:02}Z",
            "dialect": dialect,
            "query_id": f"{name}-{number}",
        }
        if pick.random() < 0.04:
            row["status"] = "failed"
        if pick.random() < 0.02:
            row["truncated"] = "true"
        if pick.random() < 0.2:
            row["database"] = "shop"
        rows.append(row)
    if pick.random() < 0.15:  # a script and its parts
        script = f"{name}-script"
        rows.append({**rows[-1], "sql": ";\n".join(texts[:2]), "query_id": script, "session_id": script})
        for number, text in enumerate(texts[:2]):
            part = {"sql": text, "query_id": f"{script}-{number}", "session_id": script, "parent_id": script}
            rows.append({**rows[-1], **part})
    return rows


def _start(pick: random.Random) -> list[str]:
    return pick.choice(
        [[], [], ["SET search_path = s1, public"], ["USE s2"], ["SET search_path = s0"], ["-- nothing\nSET x = 1"]]
    )


def _query(pick: random.Random) -> list[str]:
    one, two = pick.choice(TABLES), pick.choice(TABLES)
    column = f"c{pick.randrange(4)}"
    return [
        pick.choice(
            [
                f"SELECT x.{column}, y.a FROM {one} x JOIN {two} y ON x.id = y.id WHERE x.b = '{pick.random()}'",
                f"SELECT {column} FROM {one}, {two}",
                f"SELECT * FROM {one} WHERE id IN ({pick.randrange(99)}, {pick.randrange(99)})",
                f"SELECT {column} FROM t{pick.randrange(12)} ORDER BY {pick.randrange(1, 3)}",
                f"SELECT v, {column} FROM mart.m{pick.randrange(4)}, {one}",
                f"SELECT FROM {one} WHERE (",
                f"WITH q AS (SELECT * FROM {one}) SELECT q.{column} FROM q UNION SELECT z FROM {two}",
                f"SELECT {column} FROM {one}; SELECT a FROM {two}",
                "SELECT twice(id) AS t FROM s0.t1",
            ]
        )
    ]


def _write(pick: random.Random) -> list[str]:
    target, source = f"mart.m{pick.randrange(4)}", pick.choice(TABLES)
    return [
        pick.choice(
            [
                f"INSERT INTO {target} (v, w) SELECT c1, c2 FROM {source} WHERE id > {pick.randrange(99)}",
                f"INSERT INTO {target} SELECT * FROM {source}",
                f"CREATE OR REPLACE VIEW mart.v{pick.randrange(3)} AS SELECT * FROM {source}",
                f"CREATE TABLE IF NOT EXISTS {source} (id int, c{pick.randrange(4)} text)",
                f"UPDATE {target} SET v = '{pick.random()}' WHERE w = 1",
                f"ALTER TABLE {target} ADD COLUMN x{pick.randrange(3)} int",
                "CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql AS 'SELECT n + n'",
            ]
        )
    ]


def _episode(pick: random.Random) -> list[str]:
    source = pick.choice(TABLES)
    return [
        f"CREATE TEMP TABLE work AS SELECT id, c1 FROM {source} WHERE id > {pick.randrange(9)}",
        *_query(pick),
        f"INSERT INTO mart.m{pick.randrange(2)} (v) SELECT c1 FROM work",
        *(["DROP TABLE work"] if pick.random() < 0.7 else []),
    ]


def _transaction(pick: random.Random) -> list[str]:
    return ["BEGIN", *_write(pick), *_query(pick), pick.choice(["COMMIT", "ROLLBACK"])]


def _staging(pick: random.Random) -> list[str]:
    return [
        f"CREATE TABLE stg AS SELECT * FROM {pick.choice(TABLES)}",
        *_write(pick),
        "ALTER TABLE stg RENAME TO mart.n",
    ]


_SHAPES = [_query, _query, _query, _query, _write, _write, _episode, _transaction, _staging]
