"""The tokens of a statement: names, parts between commas, and what scripts state of tables and columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql.syntax.lexer import STRING_TYPES, closing
from govtool.names import dataset_id, fold, join_name

StatedProperties = dict[str, dict[tuple[str | None, str, str], list[tuple[str, str]]]]
"""By dataset; by column, the kind of property, and its key; names and values of facts."""

_NESTED = frozenset({"STRUCT", "ARRAY", "MAP", "ROW"})


class NameReader:
    """The tokens of a statement, and the names in them as the session resolves them."""

    def __init__(
        self,
        dialect: str,
        namespace: str,
        catalog: str | None,
        schema: str | None,
        known: Collection[str],
        stated: StatedProperties,
    ) -> None:
        self.dialect = dialect
        self.namespace = namespace
        self.catalog = catalog
        self.schema = schema
        self.path: tuple[str, ...] = ()
        self.known = known
        self.stated = stated
        self.tokens: list[Token] = []
        self.words: list[str] = []

    def name(self, at: int) -> tuple[list[tuple[str, bool]], int]:
        """A dotted name, as parts with whether they were quoted, and where it ends."""
        parts: list[tuple[str, bool]] = []
        while at < len(self.tokens):
            token = self.tokens[at]
            quoted = token.token_type == TokenType.IDENTIFIER
            if not quoted and not re.match(r"[^\W\d]", token.text):
                break
            text, at = token.text, at + 1
            while self.dialect == "bigquery" and not quoted and self._glued(at):  # my-project.d.t
                text, at = f"{text}-{self.tokens[at + 1].text}", at + 2
            split = text.split(".") if quoted and self.dialect == "bigquery" else [text]
            parts += ((part, quoted) for part in split)
            if at >= len(self.tokens) or self.tokens[at].token_type != TokenType.DOT:
                break
            at += 1
        return parts, at

    def _glued(self, at: int) -> bool:
        if at + 1 >= len(self.tokens) or self.tokens[at].token_type != TokenType.DASH:
            return False
        return self.tokens[at - 1].end + 1 == self.tokens[at].start and self.tokens[at].end + 1 == (
            self.tokens[at + 1].start
        )

    def dataset(self, parts: Sequence[tuple[str, bool]]) -> str:
        """The id of the dataset that a name means; on a search path the first that is known."""
        names = [fold(text, quoted=quoted, dialect=self.dialect, table=True) for text, quoted in parts]
        if len(names) > 1:
            return self._id(names)
        schemas = self.path or ((self.schema,) if self.schema else ())
        ids = [self._id([schema, *names]) for schema in schemas]
        return next((one for one in ids if one in self.known), ids[0] if ids else self._id(names))

    def _id(self, names: list[str]) -> str:
        if len(names) == 2 and self.catalog:
            names = [self.catalog, *names]
        return dataset_id(join_name(names), self.namespace)

    def column(self, part: tuple[str, bool]) -> str:
        """The path of a column as the dialect folds it."""
        return fold(part[0], quoted=part[1], dialect=self.dialect)

    def text_at(self, at: int) -> str | None:
        """The text of a string at a place; None if there is none."""
        if at < len(self.tokens) and self.tokens[at].token_type in STRING_TYPES:
            return self.tokens[at].text
        return None

    def elements(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Parts between the commas at the top, as ranges."""
        first = at = start
        while at < end:
            at = self.behind(at)
            if at < end and self.tokens[at].token_type == TokenType.COMMA:
                yield first, at
                first = at = at + 1
        if first < end:
            yield first, end

    def behind(self, at: int) -> int:
        """The place behind a token, or behind what it opens; a comma's own place."""
        kind = self.tokens[at].token_type
        if kind == TokenType.COMMA:
            return at
        if kind == TokenType.L_PAREN:
            return closing(self.tokens, at) + 1
        if self.words[at] in _NESTED and at + 1 < len(self.tokens) and self.tokens[at + 1].text == "<":
            depth, at = 0, at + 1
            while at < len(self.tokens):
                text = self.tokens[at].text if self.words[at] else ""
                depth += (text.count("<") - text.count(">")) if set(text) <= {"<", ">"} else 0
                at += 1
                if depth <= 0:
                    break
            return at
        return at + 1

    def is_set(self, at: int) -> bool:
        """Return whether ``=`` follows the word at a place."""
        return at + 1 < len(self.tokens) and self.tokens[at + 1].token_type == TokenType.EQ
