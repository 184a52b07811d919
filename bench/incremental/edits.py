"""Random edits of a folder of SQL, such as people make: they concern one file, and may matter to many.

Now and then two are made at once, the last is taken back, or an option of the ingest is changed.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

_WORD = re.compile(r"\b[a-z_][a-z0-9_]{3,}\b")
_DEFINITION = re.compile(
    r"(?P<head>\bcreate\s+(?:or\s+replace\s+)?(?:table|view|materialized\s+view)\s+(?:if\s+not\s+exists\s+)?)"
    r"(?P<name>[`\w.\"-]+)",
    re.IGNORECASE,
)
_COLUMN = re.compile(r"^\s+[\w\"]+\s+(?:int|bigint|text|varchar|numeric|date|timestamp|number|string)\b.*,\s*$", re.I)
_TABLE = re.compile(r"\b(?:from|join)\s+([`\w.\"-]*[`\w\"])", re.IGNORECASE)
_REF = re.compile(r"\bref\(\s*['\"](\w+)['\"]\s*\)")
_VARIABLE = re.compile(r"\bvar\(\s*['\"](\w+)['\"]")
_MACRO = re.compile(r"\{%-?\s*macro\s")

_UNDONE = 0.06
"""The share of edits that take the last one back."""
_TWO_AT_ONCE = 0.15
"""The share of edits that are two."""


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
        self.properties = {path: _text(path) for path in sorted(folder.rglob("*.yml")) if _is_read(path, folder)}
        """Property files of dbt, with their texts before the first edit."""
        self.options: dict[str, Any] = {}
        """Options of the ingest, by their names in ``SqlRequest``, that edits have changed."""
        self._before: tuple[dict[Path, bytes], dict[str, Any]] = ({}, {})
        """All files and options before the last edit."""

    def edit(self) -> str:
        """Make one edit, or two at once, or take the last back; return what it was."""
        if self._before[0] and self.random.random() < _UNDONE:
            self._undo()
            return "undone"
        self._before = (self._all_files(), dict(self.options))
        done = self._edit_once()
        return f"{done} and {self._edit_once()}" if self.random.random() < _TWO_AT_ONCE else done

    def _edit_once(self) -> str:
        for _ in range(50):
            make = self.random.choice(EDITS)
            done = make(self)
            if done:
                return f"{make.__name__.strip('_')}: {done}"
        raise LookupError(f"nothing can be edited in {self.folder}")

    def _all_files(self) -> dict[Path, bytes]:
        """All files but links, with what they hold."""
        found = (path for path in sorted(self.folder.rglob("*")) if not path.is_symlink() and path.is_file())
        return {path: path.read_bytes() for path in found}

    def _undo(self) -> None:
        """Take the last edit back; links stay."""
        files, self.options = self._before
        for path in self._all_files().keys() - files.keys():
            path.unlink()
        for path, data in files.items():
            if not path.is_file() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        self._before = ({}, {})

    def _paths(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*.sql") if path.is_file() and not path.is_symlink())

    def any_file(self, holding: re.Pattern[str] | None = None) -> Path | None:
        """One of the files; of those in which a pattern is found, if there is one."""
        paths = self._paths()
        if holding is not None:
            paths = [path for path in paths if holding.search(_text(path))]
        return self.random.choice(paths) if paths else None

    def some(self, most: int) -> list[Path]:
        """A few of the files."""
        paths = self._paths()
        return self.random.sample(paths, min(most, len(paths)))

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


def _is_read(path: Path, folder: Path) -> bool:
    return path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)


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


def _project(w: Warehouse) -> str:
    """A variable more in a dbt_project.yml, another value of one, or any line twice, gone or with another word."""
    files = [path for path in w.properties if path.name == "dbt_project.yml"]
    if not files:
        return ""
    path = w.random.choice(files)
    lines = _text(path).split("\n")
    variables = [number for number, line in enumerate(lines) if line.startswith("vars:")]
    if variables and w.random.random() < 0.7:
        name = w.random.choice(["tuva_last_run", "added", *_VARIABLE.findall("\n".join(_text(p) for p in w.some(20)))])
        lines.insert(variables[0] + 1, f"  {name}: value_{w.random.randrange(9)}")
        return _change(w, path, lambda _: "\n".join(lines))
    if w.random.random() < 0.5:
        return _change(w, path, lambda _: w.properties[path])
    at = w.random.randrange(len(lines))
    lines[at : at + 1] = w.random.choice([[lines[at]] * 2, [], [f"{lines[at]} # note"]])
    return _change(w, path, lambda _: "\n".join(lines))


def _seed(w: Warehouse) -> str:
    """A seed whose columns become others, or a new one."""
    projects = [path.parent for path in w.properties if path.name == "dbt_project.yml"]
    if not projects:
        return ""
    found = sorted(path for path in w.folder.rglob("*.csv") if path.is_file())
    if not found or w.random.random() < 0.2:
        path = w.random.choice(projects) / "seeds" / f"seed_{w.random.randrange(9)}.csv"
        path.parent.mkdir(exist_ok=True)
        before = path.read_bytes() if path.exists() else b""
        path.write_text(f"id,name_{w.random.randrange(9)},shown\n1,a,b\n")
        return w.name_of(path) if path.read_bytes() != before else ""
    path = w.random.choice(found)
    header, _, rest = path.read_text(encoding="utf-8", errors="replace").partition("\n")
    columns = header.split(",")
    at = w.random.randrange(len(columns))
    columns[at : at + 1] = w.random.choice([[], [columns[at], f"more_{w.random.randrange(9)}"], ["other"]])
    path.write_text(",".join(columns) + "\n" + rest, encoding="utf-8")
    return w.name_of(path)


def _macro(w: Warehouse) -> str:
    """Another word in a file with macros, or a comment behind them."""
    path = w.any_file(_MACRO)
    if path is None or not _MACRO.search(_text(path)):
        return ""
    words = [*_WORD.findall(_text(path)), "macro"]
    old, new, number = w.random.choice(words), w.random.choice(words), w.random.randrange(9)
    if w.random.random() < 0.3:
        return _change(w, path, lambda text: f"{text}\n-- note {number}\n")
    return _change(w, path, lambda text: re.sub(rf"\b{re.escape(old)}\b", f"{new}_{number}", text, count=1))


def _asks_for_columns(w: Warehouse) -> str:
    """A dbt model, new or changed, whose template asks for the columns of another, which may ask for others'."""
    path = w.any_file(_REF)
    if path is None or not _REF.search(_text(path)):
        return ""
    others = [*_REF.findall(_text(path)), path.stem, *(f"asking_{number}" for number in range(6))]
    other, name = w.random.choice(others), f"asking_{w.random.randrange(6)}"
    asked = w.random.choice(
        [
            "{{ dbt_utils.star(from=ref('OTHER')) }}",
            "{% for column in adapter.get_columns_in_relation(ref('OTHER')) %}"
            "{{ column.name }} as c_{{ column.name }}, {% endfor %} 1 as one",
        ]
    )
    to = path.with_name(f"{name}.sql")
    before = _text(to) if to.exists() else ""
    text = f"select {asked} from {{{{ ref('OTHER') }}}}"
    to.write_text(text.replace("OTHER", other), encoding="utf-8")
    return f"{w.name_of(to)} of {other}" if _text(to) != before else ""


def _link(w: Warehouse) -> str:
    """A symbolic link to a file or folder of the warehouse, or to a folder outside; or one less."""
    links = sorted(path for path in w.folder.rglob("*") if path.is_symlink())
    if links and w.random.random() < 0.5:
        gone = w.random.choice(links)
        gone.unlink()
        return f"{w.name_of(gone)} is gone"
    path = w.any_file()
    if path is None:
        return ""
    outside = w.folder.parent / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "linked.sql").write_text(f"CREATE VIEW linked_{w.random.randrange(9)} AS SELECT * FROM base;")
    to, name = w.random.choice([(path, "link.sql"), (path.parent, "folder"), (outside, "outside")])
    link = w.folder / f"{w.random.choice('amz')}_{w.random.randrange(9)}_{name}"
    if link.is_symlink() or to == w.folder:
        return ""
    link.symlink_to(to, target_is_directory=to.is_dir())
    return f"{w.name_of(link)} to {to.name}"


def _option(w: Warehouse) -> str:
    """Another value of an option of the ingest, or the first one again."""
    columns = {"id": "int", f"name_{w.random.randrange(9)}": "text"}
    path = w.any_file(_TABLE)
    tables = _TABLE.findall(_text(path)) if path is not None else []
    name = w.random.choice(tables).strip('`"') if tables else "base"
    options: dict[str, list[Any]] = {
        "default_schema": ["public", "other"],
        "default_catalog": ["main"],
        "namespace": ["other"],
        "variables": [{"added": 1}, {"vars": {"tuva_last_run": "2020-01-01"}}],
        "follow_links": [True],
        "tables": [{name: columns}],
    }
    option = w.random.choice(sorted(options))
    if option in w.options:
        del w.options[option]
        return f"{option} as it was"
    w.options[option] = w.random.choice(options[option])
    return f"{option}={json.dumps(w.options[option])}"


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
    _project,
    _seed,
    _macro,
    _asks_for_columns,
    _asks_for_columns,
    _link,
    _option,
)
