"""Properties of tables and columns from DDL: comments, tags, labels, options.

    COMMENT ON COLUMN t.c IS '…'; COMMENT '…' and COMMENT = '…' clauses           descriptions, and the tags in them
    [WITH] TAG (k = 'v'), ALTER … SET TAG k = 'v', UNSET TAG k                     Snowflake
    ALTER … SET TAGS ('k' = 'v', 'k'), UNSET TAGS ('k'), SET TAG ON COLUMN c k = v Databricks
    OPTIONS (description = …, labels = …, tags = …, policy_tags = …)               BigQuery
    OPTIONS (data_policies = …)                                                    see `access_rules`
    masking policies and row access policies                                       see `access_rules`

A tag with a value is ``key:value`` and, where the value is empty or true, its key; of a qualified key the last part
counts as well. The parser leaves half of these statements as opaque text, so they are read from their tokens, and only
scripts that hold one of the keywords are looked at. Later statements of a script overrule earlier ones; a table that
is dropped or replaced loses its properties.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql.files import Script
from govtool.capture.sql.properties.access_rules import read_action, read_clause, read_data_policies, read_row_policy
from govtool.capture.sql.properties.statement_names import NameReader, StatedProperties
from govtool.capture.sql.properties.tag_texts import comment_tags, valued
from govtool.capture.sql.scripts import session
from govtool.capture.sql.syntax.lexer import STRING_TYPES, closing, lexer, word
from govtool.capture.sql.templates.macros import DbtProject, MacroLibrary
from govtool.capture.sql.templates.template import render
from govtool.model.fact import Fact
from govtool.names import DEFAULT_NAMESPACE, fold, fold_name, join_name
from govtool.redaction import clean_stated

_KEYWORDS = re.compile(
    r"\bcomment\s+(?:if\s+exists\s+)?on\b|\bcomment\s*+(?:=\s*+)?[rn]?['\"$]|\btags?\s*\(|\bset\s+tag\b|\boptions\s*\("
    r"|\bmasking\s+policy\b|\bmask\s+[\w`\"]|\bdrop\s+mask\b|\brow\s+(?:access\s+polic(?:y|ies)|filter)\b",
    re.IGNORECASE,
)

_HEADS = frozenset({"COMMENT", "CREATE", "ALTER", "SET", "UNSET", "USE", "DROP"})
_RELATIONS = frozenset({"TABLE", "VIEW"})
_OTHERS = frozenset(
    {"FUNCTION", "PROCEDURE", "SCHEMA", "DATABASE", "INDEX", "TAG", "POLICY", "TRIGGER", "ROLE", "USER", "TYPE", "AS"}
)
"""Words that end the search for TABLE or VIEW: the statement is about something else."""
_NO_COLUMN = frozenset(
    {"CONSTRAINT", "PRIMARY", "PRIMARY KEY", "UNIQUE", "FOREIGN", "FOREIGN KEY", "CHECK", "INDEX", "KEY", "LIKE"}
    | {"FULLTEXT", "SPATIAL", "EXCLUDE", "PERIOD", "PARTITION", "PROJECTION"}
)
_ACTIONS = frozenset({"ADD", "ALTER", "MODIFY", "CHANGE", "DROP", "SET", "UNSET", "RENAME", "COMMENT"})
_VERBS = frozenset({"ALTER", "MODIFY", "CHANGE", "ADD"})


def facts_of(
    scripts: Iterable[Script],
    *,
    dialect: str = "",
    source: str = "",
    namespace: str = DEFAULT_NAMESPACE,
    default_catalog: str | None = None,
    default_schema: str | None = None,
    variables: Mapping[str, object] | None = None,
    known: Collection[str] = (),
    projects: Iterable[DbtProject] = (),
    only: Collection[str] | None = None,
) -> tuple[Fact, ...]:
    """Return the comments, tags and options that scripts give to tables and columns.

    Args:
        scripts: The scripts; those without any of the keywords cost one search of their text.
        dialect: sqlglot's name of it.
        source: The ingest's source.
        namespace: Of the dataset ids.
        default_catalog: For names without one.
        default_schema: For names without one.
        variables: For templates.
        projects: dbt projects, for their macros.
        known: Ids of datasets; on a search path the first schema that has the table counts.
        only: The files whose scripts are looked at; of the others only the macros count. None: all.
    """
    read = list(scripts)
    wanted = read if only is None else [script for script in read if script.file in only]
    chosen = [script for script in wanted if _KEYWORDS.search(script.text)]
    if not chosen:
        return ()
    macros = MacroLibrary([script.text for script in read if "macro" in script.text], projects)
    catalog = fold_name(default_catalog, dialect) if default_catalog else None
    schema = fold_name(default_schema, dialect) if default_schema else None
    found: list[Fact] = []
    for script in chosen:
        stated: StatedProperties = {}
        for variant in render(script.text, variables, script.file, macros=macros, dialect=dialect).variants:
            try:
                tokens = lexer(dialect).tokenize(variant.text)
            except SqlglotError:  # the extraction reports it
                continue
            reader = _Reader(dialect, namespace, catalog, schema, known, stated)
            for statement in filter(None, _statements(tokens)):
                reader.read(statement)
        for dataset, parts in stated.items():
            for (column, _, _), values in parts.items():
                cleaned = [(name, clean_stated(name, value)) for name, value in values]
                found += (Fact(dataset, column, name, value, "sql", script.file, source) for name, value in cleaned)
    return tuple(dict.fromkeys(found))


def _statements(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    start = 0
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.SEMICOLON:
            yield list(tokens[start:index])
            start = index + 1
    yield list(tokens[start:])


class _Reader(NameReader):
    """The statements of one script, in order."""

    def read(self, tokens: list[Token]) -> None:
        """One statement."""
        head = word(tokens[0])
        if head not in _HEADS:
            return
        self.tokens, self.words = tokens, [*(word(token) for token in tokens), "", "", ""]
        change = session.change(tokens, self.dialect) if head in ("USE", "SET", "ALTER") else None
        if change is not None:
            self.catalog = change.catalog if change.catalog is not None else self.catalog
            self.schema = change.schema if change.schema is not None else self.schema
            self.path = change.search_path or (() if change.schema is not None else self.path)
        elif head == "COMMENT":
            self._comment_on()
        elif head in ("SET", "UNSET"):
            self._tag_on(head)
        elif not read_row_policy(self):
            self._relation(head)

    # Properties

    def _comment(self, dataset: str, column: str | None, text: str | None) -> None:
        tags, key = self.stated.setdefault(dataset, {}), (column, "comment", "")
        tags.pop(key, None)
        if text and text.strip():
            tags[key] = [("description", text.strip()), *(("tag", tag) for tag in comment_tags(text))]

    def _tag(self, dataset: str, column: str | None, key: str, value: str | None) -> None:
        self.stated.setdefault(dataset, {})[column, "tag", key] = [("tag", tag) for tag in valued(key, value)]

    def _untag(self, dataset: str, column: str | None, key: str) -> None:
        self.stated.get(dataset, {}).pop((column, "tag", key), None)

    # Statements

    def _comment_on(self) -> None:
        at = 3 if self.words[1:3] == ["IF", "EXISTS"] else 1
        if self.words[at] != "ON":
            return
        kinds = [*self.words[at + 1 : at + 4]]
        kind = next((n for n, name in enumerate(kinds) if name in ("COLUMN", *_RELATIONS)), None)
        if kind is None or any(name in _OTHERS for name in kinds[:kind]):
            return
        parts, end = self.name(at + 2 + kind)
        text = self.text_at(end + 1)
        if not parts or self.words[end] != "IS" or (text is None and self.words[end + 1] != "NULL"):
            return
        if kinds[kind] != "COLUMN":
            self._comment(self.dataset(parts), None, text)
        elif len(parts) > 1:
            self._comment(self.dataset(parts[:-1]), self.column(parts[-1]), text)

    def _tag_on(self, head: str) -> None:
        """Databricks: ``SET TAG ON COLUMN c.s.t.email pii = email``."""
        if self.words[1:3] != ["TAG", "ON"]:
            return
        kind = self.words[3]
        parts, end = self.name(4)
        if kind not in ("COLUMN", *_RELATIONS) or len(parts) < (2 if kind == "COLUMN" else 1):
            return
        column = self.column(parts.pop()) if kind == "COLUMN" else None
        if end < len(self.tokens):
            key = self.tokens[end].text
            if head == "UNSET":
                self._untag(self.dataset(parts), column, key)
            else:
                value = self.tokens[end + 2].text if end + 2 < len(self.tokens) else None
                self._tag(self.dataset(parts), column, key, value)

    def _relation(self, head: str) -> None:
        """CREATE, ALTER or DROP of a table or view."""
        at = 1
        while self.words[at] not in _RELATIONS:
            if at >= len(self.tokens) or self.words[at] in _OTHERS or self.tokens[at].token_type == TokenType.L_PAREN:
                return
            if head == "CREATE" and self.words[at] in ("TEMP", "TEMPORARY", "VOLATILE"):
                return  # gone with its session
            at += 1
        at += 1
        while self.words[at] in ("IF", "NOT", "EXISTS", "ONLY", "NOT EXISTS"):
            at += 1
        parts, at = self.name(at)
        if not parts:
            return
        dataset = self.dataset(parts)
        if head == "ALTER":
            self._alter(dataset, at)
            return
        if head == "DROP" or "REPLACE" in self.words[:4]:
            self.stated.pop(dataset, None)
        if head == "CREATE":
            self._create(dataset, at)

    def _create(self, dataset: str, at: int) -> None:
        if at < len(self.tokens) and self.tokens[at].token_type == TokenType.L_PAREN:
            end = closing(self.tokens, at)
            self._definitions(dataset, at + 1, end)
            at = end + 1
        stop = at
        while stop < len(self.tokens) and self.words[stop] not in ("AS", "SELECT"):
            opens = self.tokens[stop].token_type == TokenType.L_PAREN
            if opens and " ".join(self.words[stop - 2 : stop]).endswith("PARTITIONED BY"):
                self._definitions(dataset, stop + 1, closing(self.tokens, stop))  # Hive: columns with comments
            stop = closing(self.tokens, stop) + 1 if opens else stop + 1
        self._clauses(dataset, None, at, stop)

    def _definitions(self, dataset: str, start: int, end: int) -> None:
        """Column definitions in parentheses."""
        for first, last in self.elements(start, end):
            if self.words[first] in _NO_COLUMN or last <= first:
                continue
            parts, at = self.name(first)
            if len(parts) == 1:
                self._clauses(dataset, self.column(parts[0]), at, last)

    def _clauses(self, dataset: str, column: str | None, at: int, end: int) -> None:
        """The comment, tags and options of a definition; what is in other brackets is not its own."""
        while at < end:
            name = self.words[at]
            after = at + 1 < end
            opens = after and self.tokens[at + 1].token_type == TokenType.L_PAREN
            if name == "COMMENT" and after:
                text = self.text_at(at + 2 if self.tokens[at + 1].token_type == TokenType.EQ else at + 1)
                if text is not None:
                    self._comment(dataset, column, text)
            elif name in ("TAG", "TAGS") and opens:
                self._tags(dataset, column, at + 2, closing(self.tokens, at + 1))
            elif name == "OPTIONS" and opens:
                self._options(dataset, column, at + 2, closing(self.tokens, at + 1))
            elif name == "TBLPROPERTIES" and opens:
                self._properties(dataset, at + 2, closing(self.tokens, at + 1))
            at = max(self.behind(at), at + 1, read_clause(self, dataset, column, at))

    def _tags(self, dataset: str, column: str | None, at: int, end: int, *, unset: bool = False) -> int:
        """``k = 'v', k`` with keys as names or strings; the place behind the last."""
        while at < end:
            text = self.text_at(at)
            if text is not None:
                key, at = text, at + 1
            else:
                parts, behind = self.name(at)
                if not parts or behind > end:
                    break
                key, at = join_name([fold(p, quoted=q, dialect=self.dialect) for p, q in parts]), behind
            value = None
            if at < end and self.tokens[at].token_type == TokenType.EQ:
                value = self.tokens[at + 1].text if at + 1 < end else None
                at += 2
            if unset:
                self._untag(dataset, column, key)
            else:
                self._tag(dataset, column, key, value)
            if at >= end or self.tokens[at].token_type != TokenType.COMMA or self._is_action(at + 1):
                break
            at += 1
        return at

    def _is_action(self, at: int) -> bool:
        """Return whether something else than a further tag comes: ``SET TAG a = 'b', COLUMN c SET TAG …``."""
        return self.words[at] == "COLUMN" or (self.words[at] in _ACTIONS and not self.is_set(at))

    def _options(self, dataset: str, column: str | None, start: int, end: int) -> None:
        """BigQuery's ``description = '…', labels = [('k', 'v')], policy_tags = […]``."""
        tags = self.stated.setdefault(dataset, {})
        for first, last in self._option_ranges(start, end):
            name = self.tokens[first].text.lower()
            texts = [t.text for t in self.tokens[first + 2 : last] if t.token_type in STRING_TYPES]
            if name == "description":
                self._comment(dataset, column, "".join(texts))
            elif name in ("labels", "tags"):
                for old in [k for k in tags if k[:2] == (column, "tag") and k[2].startswith(f"{name} ")]:
                    del tags[old]
                for key, value in zip(texts[::2], texts[1::2], strict=False):
                    tags[column, "tag", f"{name} {key}"] = [
                        ("tag", tag) for tag in valued(key.rpartition("/")[2], value)
                    ]
            elif name == "policy_tags":
                tags[column, "tag", name] = [("tag", text) for text in texts]
            elif name == "data_policies":
                read_data_policies(tags, column, texts)

    def _option_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Ranges of ``name = value``: a comma counts only if a name and ``=`` follow."""
        first = start
        for at in range(start, end):
            if (
                self.tokens[at].token_type == TokenType.COMMA
                and at + 2 < end
                and self.tokens[at + 2].token_type == TokenType.EQ
            ):
                yield first, at
                first = at + 1
        if first < end:
            yield first, end

    def _properties(self, dataset: str, start: int, end: int) -> None:
        """Spark: ``TBLPROPERTIES ('comment' = '…')`` is the table's comment."""
        for at in range(start, end - 2):
            if self.tokens[at].text.lower() == "comment" and self.tokens[at + 1].token_type == TokenType.EQ:
                self._comment(dataset, None, self.text_at(at + 2))

    def _alter(self, dataset: str, at: int) -> None:
        """The actions of an ALTER, with the column that each is about."""
        column: str | None = None
        verb = ""
        end = len(self.tokens)
        while at < end:
            name = self.words[at]
            kind = self.tokens[at].token_type
            if kind == TokenType.COMMA:
                at += 1
                if verb in ("ALTER", "MODIFY", "ADD") and self.words[at] not in {*_ACTIONS, "COLUMN"}:
                    column, at = self._altered(at)
                elif self.words[at] != "COLUMN":
                    column = None
            elif rule := read_action(self, dataset, column, at):
                at = rule
            elif name in _VERBS and not self.is_set(at):
                verb = name
                column, at = self._changed_columns(dataset, name, at + 1)
            elif name == "COLUMN":
                column, at = self._altered(at + 1)
            elif name in ("SET", "UNSET") and self.words[at + 1] in ("TAG", "TAGS"):
                at = self._set_tags(dataset, column, name, at + 2)
            elif name == "UNSET" and self.words[at + 1] == "COMMENT":
                self._comment(dataset, column, None)
                at += 2
            else:
                behind = self.behind(at)
                if name in ("COMMENT", "OPTIONS", "TBLPROPERTIES", "TAG"):
                    self._clauses(dataset, column, at, min(end, self.behind(at + 1) + 1) if at + 1 < end else end)
                at = max(behind, at + 1)

    def _changed_columns(self, dataset: str, verb: str, at: int) -> tuple[str | None, int]:
        """The column behind ALTER, MODIFY, CHANGE or ADD, and the place behind it; columns in parentheses are read."""
        while self.words[at] in ("COLUMN", "COLUMNS", "IF", "NOT", "EXISTS"):
            at += 1
        if at < len(self.tokens) and self.tokens[at].token_type == TokenType.L_PAREN:
            close = closing(self.tokens, at)
            self._definitions(dataset, at + 1, close)
            return None, close + 1
        column, at = self._altered(at)
        return self._altered(at) if verb == "CHANGE" else (column, at)  # the old name, then the new one

    def _set_tags(self, dataset: str, column: str | None, verb: str, at: int) -> int:
        """Tags behind ``SET TAG`` or ``UNSET TAG``, in parentheses or not; the place behind them."""
        end = len(self.tokens)
        opens = at < end and self.tokens[at].token_type == TokenType.L_PAREN
        close = closing(self.tokens, at) if opens else end
        behind = self._tags(dataset, column, at + 1 if opens else at, close, unset=verb == "UNSET")
        return close + 1 if opens else max(behind, at)

    def _altered(self, at: int) -> tuple[str | None, int]:
        parts, behind = self.name(at)
        path = join_name([self.column(part) for part in parts])  # with dots: a field of a struct
        return (path, behind) if parts else (None, at)
