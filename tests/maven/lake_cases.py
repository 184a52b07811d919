"""Statements on tables of a lake format with what they say of columns, written by hand; the same for every format.

``{t}`` is the place of tables. Edges are written ``column <- dataset.column kind``, the datasets without their place;
several columns or kinds share a line.
"""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """A statement and what it says."""

    text: str
    stated: str
    """``target kind mode``; empty: nothing."""
    edges: tuple[str, ...] = ()
    same_in_sql: bool = True
    """Whether SQL text alone says the same; False where only the session knows the columns."""


SCHEMA = {
    "users": ["id", "email", "country"],
    "updates": ["id", "email", "country", "op"],
    "people": ["id", "email", "country", "extra"],
    "parts": ["id", "email", "day"],
}
"""What the SQL extractor is told of columns."""

MERGE = Case(
    """MERGE INTO {t}users t USING {t}updates s ON t.id = s.id
WHEN MATCHED AND s.op = 'd' THEN DELETE
WHEN MATCHED AND s.op = 'u' THEN UPDATE SET email = lower(s.email), country = coalesce(s.country, t.country)
WHEN NOT MATCHED AND s.op <> 'd' THEN INSERT (id, email) VALUES (s.id, s.email)
WHEN NOT MATCHED BY SOURCE AND t.country = 'xx' THEN UPDATE SET country = concat('gone', t.email)""",
    "users merge update",
    (
        "* <- updates.* read",
        "* <- updates.id join",
        "* <- users.id join",
        "* <- updates.op filter",
        "id <- updates.id identity",
        "email <- updates.email transformation",
        "email <- updates.email identity",
        "email <- updates.id conditional",
        "email <- updates.op conditional",
        "email <- users.id conditional",
        "country <- updates.country transformation",
        "country <- users.country transformation",
        "country <- users.email transformation",
        "country <- users.country conditional",
        "country <- updates.id conditional",
        "country <- updates.op conditional",
        "country <- users.id conditional",
    ),
)
STAR = Case(
    "MERGE INTO {t}users t USING (SELECT id, upper(email) AS email, country FROM {t}updates WHERE op = 'u') s"
    " ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "users merge update",
    (
        "* <- updates.* read",
        "* <- updates.id join",
        "* <- users.id join",
        "* <- updates.op filter",
        "id <- updates.id identity",
        "email <- updates.email transformation",
        "country <- updates.country identity",
        *(
            f"{c} <- {s} conditional"
            for c in ("id", "email", "country")
            for s in ("updates.id", "updates.op", "users.id")
        ),
    ),
)
DELETE_ONLY = Case(
    "MERGE INTO {t}users t USING {t}updates s ON t.id = s.id AND s.op = 'x' WHEN MATCHED THEN DELETE",
    "users merge update",
    ("* <- updates.* read", "* <- updates.id join", "* <- updates.op join", "* <- users.id join"),
)
EVOLVING = Case(
    "MERGE WITH SCHEMA EVOLUTION INTO {t}users t USING {t}people s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "users merge update",
    (
        "* <- people.* read",
        "* <- people.id join",
        "* <- users.id join",
        *(f"{c} <- people.{c} identity" for c in ("id", "email", "country", "extra")),
        *(f"{c} <- {s} conditional" for c in ("id", "email", "country", "extra") for s in ("people.id", "users.id")),
    ),
    same_in_sql=False,
)
UPDATE = Case(
    "UPDATE {t}users SET email = upper(country), country = 'c' WHERE id > 5",
    "users update update",
    ("email <- users.country transformation", "email <- users.id conditional", "country <- users.id conditional"),
)
UPDATE_ALL = Case("UPDATE {t}users SET country = email", "users update update", ("country <- users.email identity",))
DELETE = Case(
    "DELETE FROM {t}users WHERE length(country) = 3 OR id = 7",
    "users delete delete",
    ("* <- users.country filter", "* <- users.id filter"),
)
UPDATE_IN = Case(
    "UPDATE {t}users SET email = country WHERE id IN (SELECT id FROM {t}updates WHERE op = 'u')",
    "users update update",
    (
        "* <- updates.* read",
        "email <- users.country identity",
        "email <- users.id conditional",
        "email <- updates.id conditional",
        "email <- updates.op conditional",
    ),
)
DELETE_IN = Case(
    "DELETE FROM {t}users WHERE id IN (SELECT id FROM {t}updates WHERE op = 'u')",
    "users delete delete",
    ("* <- updates.* read", "* <- users.id filter", "* <- updates.id filter", "* <- updates.op filter"),
)
CHANGES = [MERGE, STAR, DELETE_ONLY, UPDATE, UPDATE_ALL, DELETE]

_COPY = ("* <- updates.* read", "id <- updates.id identity", "email <- updates.email identity")
WRITES = [
    Case("CREATE TABLE {t}parts (id BIGINT, email STRING, day STRING) USING {format} PARTITIONED BY (day) {properties}",
         "parts create_table declare"),
    Case("INSERT INTO {t}parts SELECT id, email, 'a' FROM {t}updates", "parts insert append", _COPY),
    Case("INSERT OVERWRITE {t}parts PARTITION (day = 'b') SELECT id, email FROM {t}updates", "parts insert append", _COPY),
    Case("INSERT OVERWRITE {t}parts SELECT id, email, op FROM {t}updates", "parts insert replace",
         (*_COPY, "day <- updates.op identity")),
    Case("INSERT INTO {t}parts BY NAME SELECT email, op AS day, id FROM {t}updates", "parts insert append",
         (*_COPY, "day <- updates.op identity")),
    Case("CREATE OR REPLACE TABLE {t}again USING {format} AS SELECT id, email FROM {t}updates",
         "again create_table_as replace", _COPY),
    Case("CREATE OR REPLACE TABLE {t}again USING {format} AS SELECT email FROM {t}updates",
         "again create_table_as replace", ("* <- updates.* read", "email <- updates.email identity")),
]  # fmt: skip
DEFINITIONS = [
    Case("ALTER TABLE {t}parts ADD COLUMN phone STRING", "parts alter declare"),
    Case("ALTER TABLE {t}parts RENAME COLUMN phone TO mobile", "parts alter update",
         ("mobile <- parts.phone identity",)),
    Case("ALTER TABLE {t}parts DROP COLUMN mobile", ""),
    Case("COMMENT ON TABLE {t}parts IS 'people'", ""),
    Case("DROP TABLE {t}again", "again drop drop"),
]  # fmt: skip
SETUP = [
    "CREATE TABLE {t}users (id BIGINT, email STRING, country STRING) USING {format} {properties}",
    "INSERT INTO {t}users VALUES (1, 'A', 'xx'), (2, 'B', 'yy'), (3, 'C', 'zz')",
    "CREATE TABLE {t}updates USING {format} AS"
    " SELECT id + 1 AS id, concat('u', id) AS email, 'yy' AS country, 'u' AS op FROM range(4)",
    "CREATE TABLE {t}people USING {format} AS SELECT id, email, country, op AS extra FROM {t}updates",
]
