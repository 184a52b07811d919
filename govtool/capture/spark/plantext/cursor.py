"""A place in the text of an expression: brackets, literals without quotes, and the attributes that a stretch names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from govtool.capture.spark import plan as p

ATTRIBUTE = re.compile(r"([^\s,()\[\]{}#]+)#(\d+)L?(?!\w)")
ANY_ID = re.compile(r"#(\d+)L?(?!\w)")
LAMBDA = re.compile(r"(?:lambda \S+?|namedlambdavariable\(\))#\d+L?|lambda \w+")
_STOP = re.compile(
    r", |\)|\]|\}| (?:AND|OR|<=>|>=|<=|=|<|>|\+|-|\*|/|%|&|\|"
    r"|THEN|WHEN|ELSE|END|else|AS|ASC|DESC|IN|INSET|LIKE|FILTER)(?= |\Z)"
    r"| (?:END)(?=[,)\]]|\Z)"
)


class UnreadablePlanError(Exception):
    """The structure of this text cannot be told."""


class TextCursor:
    """A place in a text.

    Args:
        text: Without names that have spaces or brackets in them.
        known: Names of attributes by id.
    """

    def __init__(self, text: str, known: Mapping[int, set[str]]) -> None:
        self.text = text
        self.known = known
        self.at = 0
        self.uncertain = 0
        """Literals that attributes were found in."""

    def literal(self) -> p.Expression:
        """Text without quotes: up to where something else must follow."""
        start = self.at
        depth = 0
        position = start
        while position < len(self.text):
            char = self.text[position]
            if char in "([{":
                depth += 1
            elif depth and char in ")]}":
                depth -= 1
            elif not depth and _STOP.match(self.text, position):
                break
            position += 1
        if position >= len(self.text) and depth:  # a bracket that never closes
            stop = _STOP.search(self.text, start)
            position = stop.start() if stop is not None else len(self.text)
        self.at = max(position, start)
        return self._hidden(self.text[start : self.at])

    def _hidden(self, text: str) -> p.Expression:
        """What a literal is: a constant, unless it names attributes. Elements of lists have no space between them."""
        found = attributes_of(LAMBDA.sub("", text), self.known)
        if not found:
            return p.CONSTANT
        listed = sum(ATTRIBUTE.fullmatch(element) is not None for element in text.split(","))
        self.uncertain += listed < len(found)
        return p.Apply("", tuple(found))

    def close(self) -> None:
        """Skip to the end of the bracket that stands open: `` as decimal(10,2))``."""
        depth = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char == "(":
                depth += 1
            elif char == ")":
                if not depth:
                    return
                depth -= 1
        raise UnreadablePlanError

    def stop(self, end: str) -> int:
        """Return the end of a literal that reads like something else."""
        depth = 0
        for position in range(self.at, len(self.text)):
            char = self.text[position]
            if char in "([{":
                depth += 1
            elif char in ")]}":
                if not depth:
                    return position
                depth -= 1
            elif char == "," and not depth and self.text.startswith(", ", position):
                return position
        raise UnreadablePlanError

    def junk(self, stop: int) -> list[p.Expression]:
        """Attributes of a stretch of text that has no structure."""
        text = self.text[self.at : stop]
        self.at = stop
        return attributes_of(LAMBDA.sub("", text), self.known)

    def resync(self, word: str) -> bool:
        """Go on behind a keyword that a literal has hidden, if no attribute is lost by that."""
        at = self.text.find(word, self.at)
        if at < 0 or ANY_ID.search(self.text, self.at, at):
            return False
        self.at = at + len(word)
        return True

    def skip(self, text: str) -> bool:
        """Go on behind a text if it stands here; return whether it does."""
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False


def is_named(name: str, names: Collection[str]) -> bool:
    """Return whether an attribute's name is one of some: SQL writes it in any case, and Spark prints what SQL wrote."""
    return "" in names or name in names or name.lower() in {each.lower() for each in names}


def attributes_of(text: str, known: Mapping[int, set[str]]) -> list[p.Expression]:
    """The attributes that a text names, each once."""
    found: dict[p.Expression, None] = {}
    for match in ANY_ID.finditer(text):
        names = known.get(int(match[1]), ())
        if any(_ends_with(text, match.start(), name) for name in names):
            found[p.Attribute(int(match[1]))] = None
    return list(found)


def _ends_with(text: str, end: int, name: str) -> bool:
    """Return whether a name, in any case and from its first letter on, stands before a place in a text."""
    start = end - len(name)
    if start < 0 or text[start:end].lower() != name.lower():
        return False
    return not (start and name[:1].isalnum() and (text[start - 1].isalnum() or text[start - 1] == "_"))
