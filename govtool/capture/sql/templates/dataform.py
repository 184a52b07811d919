"""Dataform's SQLX files as SQL: blocks, ``${ref("a")}``, and what the query of a file is stored as.

Source: Dataform documentation, "Dataform core reference" (config, pre_operations, post_operations; ref, resolve, self,
name, schema, database, when, incremental). Actions go by their name, as ``ref`` calls them; in which schema they are
does not show where they are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from govtool.model.diagnostic import Diagnostic

SUFFIX: Final = ".sqlx"

_BLOCK: Final = re.compile(r"^[ \t]*(?P<kind>config|js|pre_operations|post_operations|input)\b[^{}\n]*\{", re.MULTILINE)
_SPACE: Final = re.compile(r"(?:\s+|--[^\n]*|\#[^\n]*|/\*[\s\S]*?\*/)*")
_QUERY: Final = re.compile(r"(?:SELECT|WITH|FROM)\b|\(", re.IGNORECASE)
_BETWEEN: Final = re.compile(r"^---[ \t\r]*$", re.MULTILINE)
_SETTING: Final = re.compile(
    r"\s*+(?://[^\n]*+\s++|/\*[\s\S]*?\*/\s*+)*+[\"']?(?P<key>type|name|schema|database)[\"']?"
    r"\s*:\s*(?P<quote>[\"'`])(?P<value>[^\"'`]*)(?P=quote)"
)
_STRING: Final = re.compile(r"\s*(?P<quote>[\"'`])(?P<text>[\s\S]*)(?P=quote)\s*\Z")
_STRINGS: Final = re.compile(r"[\"'`]([^\"'`]*)[\"'`]")
_PROPERTY: Final = re.compile(r"\b(database|schema|name)\s*:\s*[\"'`]([^\"'`]*)[\"'`]")
_CALL: Final = re.compile(r"\s*(?:ctx\.)?(?P<name>[A-Za-z_$][\w$.]*)\s*\((?P<arguments>[\s\S]*)\)\s*\Z")
_DEEPEST: Final = 20
"""Expressions within expressions that are read."""
_VALUE: Final = re.compile(r"\s*[A-Za-z_][\w.]*\s*\Z")
_STORED: Final = {
    "table": "CREATE OR REPLACE TABLE {} AS",
    "view": "CREATE OR REPLACE VIEW {} AS",
    "incremental": "INSERT INTO {} BY NAME",
}
"""The relation made of a file's query, by the type of its action."""


class Sqlx(NamedTuple):
    """A file as SQL, with the lines of the original."""

    text: str
    diagnostics: tuple[Diagnostic, ...] = ()


def read_sqlx(text: str, file: str) -> Sqlx:
    """Return a SQLX file as SQL. What the project's own JavaScript makes is not known: a diagnostic."""
    config, code, main, opened = _blocks(text)
    name = config.get("name") or PurePosixPath(file.replace("\\", "/")).name[: -len(SUFFIX)]
    config = {**config, "name": name}
    start = _SPACE.match(main)
    at = start.end() if start is not None else 0
    stored = _STORED.get(config.get("type", ""))
    if stored is not None and _QUERY.match(main, at) is not None:
        code = f"{code[:at]}{stored.format(_quoted([name]))} {code[at:]}"
    reader = _Expressions(config, file)
    if opened >= 0:
        message = "a block that is not closed: what stands behind it is not read"
        reader.notes["{"] = Diagnostic("template", "warning", message, file or None, text.count("\n", 0, opened) + 1)
    return Sqlx(reader.read(_BETWEEN.sub(";  ", code)), tuple(reader.notes.values()))


def _blocks(text: str) -> tuple[dict[str, str], str, str, int]:
    """The settings of a file; its text with the SQL of operations, and without it, both as long as the original; where
    a block begins that is not closed, or -1.
    """
    config: dict[str, str] = {}
    code: list[str] = []
    main: list[str] = []
    position = 0
    opened = -1
    while (match := _BLOCK.search(text, position)) is not None:
        end = _closing(text, match.end())
        if end > len(text):
            opened = match.start()
        code.append(text[position : match.start()])
        main.append(text[position : match.start()])
        inner = text[match.end() : end - 1]
        if match["kind"].endswith("operations"):
            # A semicolon before, as the file's query ends here, and one behind.
            code.append(";" + _blank(text[match.start() + 1 : match.end()]) + inner + ";")
        else:
            code.append(_blank(text[match.start() : end]))
            if match["kind"] == "config":
                config.update(_settings(inner))
        main.append(_blank(text[match.start() : end]))
        position = end
    rest = text[position:]
    return config, "".join([*code, rest]), "".join([*main, rest]), opened


def _blank(text: str) -> str:
    return "".join([c if c == "\n" else " " for c in text])


def _settings(text: str) -> dict[str, str]:
    """The settings of an object that are plain strings, without those of the objects in it."""
    found = [_SETTING.match(item) for item in _items(text)]
    return {match["key"]: match["value"] for match in found if match is not None}


def _closing(text: str, start: int) -> int:
    """Behind the brace that closes the one before ``start``, or one behind the end of the text if none does; braces in
    strings do not count, those of ``${`` do.
    """
    depth = 1
    index = start
    quote = ""
    outer: list[tuple[str, int]] = []
    while index < len(text) and depth:
        char = text[index]
        if quote:
            if char == "\\":
                index += 1
            elif char == quote or (char == "\n" and quote != "`"):
                quote = ""
            elif quote == "`" and text.startswith("${", index):
                outer.append((quote, depth))
                quote = ""
                depth += 1
                index += 1
        elif char in "\"'`":
            quote = char
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if outer and outer[-1][1] == depth:
                quote = outer.pop()[0]
        index += 1
    return index if not depth else len(text) + 1


class _Expressions:
    """Replaces the expressions of one file."""

    def __init__(self, config: Mapping[str, str], file: str) -> None:
        self.config = config
        self.file = file
        self.notes: dict[str, Diagnostic] = {}
        self.line = 1
        self.depth = 0

    def read(self, text: str) -> str:
        """The text with its expressions replaced, on the same lines."""
        if self.depth == _DEEPEST:
            return self._unknown(text)
        self.depth += 1
        try:
            return self._read(text)
        finally:
            self.depth -= 1

    def _read(self, text: str) -> str:
        parts: list[str] = []
        position = 0
        first = self.line
        while (at := text.find("${", position)) >= 0:
            end = _closing(text, at + 2)
            before = text[position:at]
            parts.append(before)
            self.line = first + text.count("\n", 0, at)
            value = self._value(text[at + 2 : end - 1])
            if value is None:
                value = text[at:end]  # a name: what it stands for may be given
            elif before[-1:].isalnum() and value[:1].isalpha() and _WORD_BEFORE.search(before) is not None:
                value = f" {value}"
            parts.append(value + "\n" * max(text.count("\n", at, end) - value.count("\n"), 0))
            position = end
        self.line = first
        parts.append(text[position:])
        return "".join(parts)

    def _value(self, expression: str) -> str | None:
        string = _STRING.match(expression)
        if string is not None and string["quote"] not in string["text"]:
            return self.read(string["text"]) if string["quote"] == "`" else string["text"]
        call = _CALL.match(expression)
        if call is None:
            return None if _VALUE.match(expression) is not None else self._unknown(expression)
        name, arguments = call["name"], call["arguments"]
        if name in ("ref", "resolve"):
            named = dict(_PROPERTY.findall(arguments)) if "{" in arguments else {}
            parts = [named[key] for key in ("database", "schema", "name") if key in named]
            return _quoted(parts or _STRINGS.findall(arguments) or ["ref"])
        if name == "self":
            return _quoted([self.config["name"]])
        if name in ("name", "schema", "database"):
            return self.config.get(name, name)
        if name == "incremental":
            return "true"
        if name == "when":
            return self._when(arguments)
        return self._unknown(name)

    def _when(self, arguments: str) -> str:
        """``when(condition, a, b)``: what it is if the condition holds."""
        items = _items(arguments)
        if len(items) < 2:
            return ""
        string = _STRING.match(items[1])
        if string is None:
            return self.read(f"${{{items[1]}}}")
        return self.read(string["text"])

    def _unknown(self, name: str) -> str:
        """Return the placeholder of what JavaScript makes: a call without arguments."""
        plain = re.sub(r"\W+", "_", name).strip("_")[:60] or "js"
        message = f"what the JavaScript of {' '.join(name.split())[:60]} makes is not known"
        self.notes.setdefault(plain, Diagnostic("template", "warning", message, self.file or None, self.line))
        return f"{plain}()"


_WORD_BEFORE: Final = re.compile(r"\b(?:FROM|JOIN|INTO|TABLE|UPDATE|USING)\Z", re.IGNORECASE)


def _items(text: str) -> list[str]:
    """The arguments of a call."""
    items: list[str] = []
    depth = start = 0
    quote = ""
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'`":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and not depth:
            items.append(text[start:index])
            start = index + 1
    return [*items, text[start:]]


def _quoted(parts: list[str]) -> str:
    """A dotted name, in backticks where it needs them."""
    name = ".".join(parts)
    return name if re.fullmatch(r"[A-Za-z_][\w.]*", name) else f"`{name}`"
