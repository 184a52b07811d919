"""Random edits of a folder of SQL, such as people make: they concern one file, and may matter to many."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

_WORD = re.compile(r"\b[a-z_][a-z0-9_]{3,}\b")
_DEFINITION = re.compile(
    r"(?P<head>\bcreate\s+(?:or\s+replace\s+)?(?:table|view|materialized\s+view)\s+(?:if\s+not\s+exists\s+)?)"
    r"(?P<name>[`\w.\"-]+)",
    re.IGNORECASE,
)
_COLUMN = re.compile(r"^\s+[\w\"]+\s+(?:int|bigint|text|varchar|numeric|date|timestamp|number|string)\b.*,\s*$", re.I)
_TABLE = re.compile(r"\b(?:from|join)\s+([`\w.\"-]*[`\w\"])", re.IGNORECASE)


class Warehouse:
    """A folder of SQL that is edited.

    Args:
        folder: It is changed in place.
        seed: Equal seeds make equal edits of equal folders.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self._first = {path.relative_to(folder).as_posix(): _text(path) for path in self._paths()}
        self.properties = {path: _text(path) for path in sorted(folder.rglob("*.yml")) if path.is_file()}
        """Property files of dbt, with their texts before the first edit."""

    def edit(self) -> str:
        """Make one edit, and return what it was."""
        for _ in range(50):
            make = self.random.choice(EDITS)
            done = make(self)
            if done:
                return f"{make.__name__.strip('_')}: {done}"
        raise LookupError(f"nothing can be edited in {self.folder}")

    def _paths(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*.sql") if path.is_file())

    def any_file(self, holding: re.Pattern[str] | None = None) -> Path | None:
        """One of the files; of those in which a pattern is found, if there is one."""
        paths = self._paths()
        if holding is not None:
            paths = [path for path in paths if holding.search(_text(path))]
        return self.random.choice(paths) if paths else None

    def name_of(self, path: Path) -> str:
        """Return the name of a file below the folder."""
        return path.relative_to(self.folder).as_posix()

    def original(self, path: Path) -> str | None:
        """Return the text that a file had before all edits."""
        return self._first.get(self.name_of(path))

    @property
    def originals(self) -> dict[str, str]:
        """The texts of all files before the first edit."""
        return self._first


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _change(w: Warehouse, path: Path | None, change: Callable[[str], str]) -> str:
    if path is None:
        return ""
    before = _text(path)
    after = change(before)
    if after == before:
        return ""
    path.write_text(after, encoding="utf-8")
    return w.name_of(path)


def _comment(w: Warehouse) -> str:
    number = w.random.randrange(1000)
    return _change(w, w.any_file(), lambda text: f"-- note {number}\n{text}")


def _trailing_comment(w: Warehouse) -> str:
    number = w.random.randrange(1000)
    return _change(w, w.any_file(), lambda text: f"{text}\n-- note {number}\n")


def _other_word(w: Warehouse) -> str:
    """Another name of a column or table: what it means may be clear, ambiguous or nothing."""
    path = w.any_file(_WORD)
    if path is None:
        return ""
    words = _WORD.findall(_text(path))
    old, new = w.random.choice(words), w.random.choice(words)
    return _change(w, path, lambda text: re.sub(rf"\b{re.escape(old)}\b", new, text, count=1))


def _new_word(w: Warehouse) -> str:
    path = w.any_file(_WORD)
    if path is None:
        return ""
    word = w.random.choice(_WORD.findall(_text(path)))
    return _change(w, path, lambda text: re.sub(rf"\b{re.escape(word)}\b", f"{word}_{w.random.randrange(9)}", text))


def _columns(w: Warehouse) -> tuple[Path | None, list[str], list[int]]:
    """A file with a CREATE TABLE, its lines, and the numbers of those that are columns; no file, if there is none."""
    path = w.any_file(re.compile(_COLUMN.pattern, re.I | re.M))
    lines = [] if path is None else _text(path).split("\n")
    return path, lines, [number for number, line in enumerate(lines) if _COLUMN.match(line)]


def _dropped_column(w: Warehouse) -> str:
    """A column less in a CREATE TABLE."""
    path, lines, places = _columns(w)
    if path is None or not places:
        return ""
    del lines[w.random.choice(places)]
    return _change(w, path, lambda _: "\n".join(lines))


def _added_column(w: Warehouse) -> str:
    """A column more in a CREATE TABLE: one that others may name."""
    path, lines, places = _columns(w)
    if path is None or not places:
        return ""
    other = w.any_file(_WORD)
    name = w.random.choice(_WORD.findall(_text(other))) if other is not None else "added"
    lines.insert(w.random.choice(places), f"    {name} text,")
    return _change(w, path, lambda _: "\n".join(lines))


def _moved_view(w: Warehouse) -> str:
    """Another name of what a file defines."""

    def renamed(match: re.Match[str]) -> str:
        name = match["name"]
        closing = name[-1] if name[-1] in '`"' else ""
        return f"{match['head']}{name.removesuffix(closing)}_moved{closing}"

    return _change(w, w.any_file(_DEFINITION), lambda text: _DEFINITION.sub(renamed, text, count=1))


def _deleted(w: Warehouse) -> str:
    path = w.any_file()
    if path is None or len(w.originals) < 4:
        return ""
    path.unlink()
    return w.name_of(path)


def _renamed_file(w: Warehouse) -> str:
    path = w.any_file()
    if path is None:
        return ""
    to = path.with_name(f"{w.random.choice('amz')}{w.random.randrange(100)}_{path.name}")
    path.rename(to)
    return f"{w.name_of(path)} to {w.name_of(to)}"


def _copied(w: Warehouse) -> str:
    """The same definitions in a second file."""
    path = w.any_file()
    if path is None:
        return ""
    to = path.with_name(f"copy{w.random.randrange(1000)}_{path.name}")
    to.write_text(_text(path), encoding="utf-8")
    return w.name_of(to)


def _restored(w: Warehouse) -> str:
    """A file as it was at first, changed or gone as it may be now."""
    name = w.random.choice(sorted(w.originals))
    path = w.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and _text(path) == w.originals[name]:
        return ""
    path.write_text(w.originals[name], encoding="utf-8")
    return name


def _property(w: Warehouse) -> str:
    """A line of a property file of dbt twice, gone, or with another word; or the file as it was at first."""
    if not w.properties:
        return ""
    path = w.random.choice(list(w.properties))
    lines = _text(path).split("\n")
    at = w.random.randrange(len(lines))
    words = _WORD.findall(lines[at])
    changed = w.random.choice(["twice", "gone", "word", "restored"])
    if changed == "restored":
        lines = w.properties[path].split("\n")
    elif changed == "word" and words:
        lines[at] = lines[at].replace(w.random.choice(words), f"other_{w.random.randrange(9)}", 1)
    else:
        lines[at : at + 1] = [lines[at]] * 2 if changed == "twice" else []
    return _change(w, path, lambda _: "\n".join(lines))


def _cut(w: Warehouse) -> str:
    """Half a file: what is left may not parse."""
    return _change(w, w.any_file(), lambda text: text[: len(text) * 2 // 3])


def _appended(w: Warehouse) -> str:
    """Statements of all kinds about a table that somebody reads."""
    reader = w.any_file(_TABLE)
    if reader is None:
        return ""
    table = w.random.choice(_TABLE.findall(_text(reader)))
    number = w.random.randrange(1000)
    statement = w.random.choice(
        [
            f"CREATE VIEW starred_{number} AS SELECT * FROM {table};",
            f"CREATE TABLE {table} (id int, added_{number} text);",
            f"INSERT INTO {table} SELECT * FROM starred_{number};",
            f"INSERT INTO {table} (id, shown_{number}) SELECT id, shown FROM starred_{number};",
            f"ALTER TABLE {table} ADD COLUMN later_{number} text;",
            f"ALTER TABLE {table} RENAME TO moved_{number};",
            f"DROP TABLE {table};",
            f"CREATE TABLE scratch AS SELECT * FROM {table}; INSERT INTO kept SELECT id FROM scratch; "
            "DROP TABLE scratch;",
            f"CREATE FUNCTION f_{number % 3}(x int) RETURNS int AS 'SELECT x + {number}' LANGUAGE sql;",
            f"SELECT f_{number % 3}(id), other FROM {table} JOIN starred_{number} USING (id);",
            f"SELECT a.shown_{number}, name FROM {table} a, scratch b WHERE a.id = b.id;",
            f"CREATE SYNONYM other_{number} FOR {table};",
            "SET search_path TO public, other;",
            "USE other_schema;",
            f"CREATE TEMPORARY TABLE t_{number} AS SELECT * FROM {table}; SELECT * FROM t_{number};",
            f"UPDATE {table} SET id = 1 WHERE flag_{number};",
            f"COMMENT ON TABLE {table} IS 'note {number} #pii';",
            "this is no SQL at all (",
        ]
    )
    where = w.random.random()
    if where < 0.5:
        return _change(w, w.any_file(), lambda text: f"{text.rstrip().rstrip(';')};\n{statement}\n")
    name = f"{w.random.choice('amz')}_new{number}.sql"
    (w.folder / name).write_text(statement, encoding="utf-8")
    return name


EDITS: tuple[Callable[[Warehouse], str], ...] = (
    _comment,
    _trailing_comment,
    _other_word,
    _other_word,
    _new_word,
    _dropped_column,
    _added_column,
    _moved_view,
    _deleted,
    _renamed_file,
    _copied,
    _restored,
    _restored,
    _cut,
    _appended,
    _appended,
    _appended,
    _property,
    _property,
)
