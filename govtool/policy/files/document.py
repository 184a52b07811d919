"""YAML files with the line of every key and value, so that errors can point at them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from govtool.errors import UsageError
from govtool.given_files import read_given_text

LARGEST = 4 * 1024 * 1024
"""Bytes of a policy file."""
MOST_NODES = 200_000
"""Values of a policy file, those that aliases repeat counted every time."""

Key = tuple[str | int, ...]


@dataclass(slots=True)
class PolicyDocument:
    """A parsed file: plain values, and where each stands."""

    file: str
    value: Any = None
    lines: dict[Key, int] = field(default_factory=dict)
    """1-based line of the key or list item at a path of keys and positions."""

    def line(self, path: Key) -> int:
        """The line of a path, or of the nearest thing around it that has one."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return 1

    def place(self, path: Key) -> str:
        """``file:line`` of a path."""
        return f"{self.file}:{self.line(path)}"


def read_document(path: Path, shown: str) -> PolicyDocument:
    """Read a file; ``shown`` is what messages call it.

    Raises:
        UsageError: It cannot be read (``policy.unreadable``) or is not YAML (``policy.syntax``).
    """
    try:
        if path.stat().st_size > LARGEST:
            raise UsageError(f"a policy file has at most {LARGEST:,} bytes", code="policy.too-large", location=shown)
        text = read_given_text(path, "utf-8-sig", LARGEST)
    except UnicodeDecodeError as error:
        raise UsageError("the file is not UTF-8", code="policy.unreadable", location=shown) from error
    except OSError as error:
        raise UsageError((error.strerror or str(error)).lower(), code="policy.unreadable", location=shown) from error
    return parse_document(text, shown)


def parse_document(text: str, shown: str) -> PolicyDocument:
    """Parse YAML text; see ``read_document``."""
    document = PolicyDocument(shown)
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is not None:
            document.value = _Reader(document, loader).read(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{shown}:{mark.line + 1}:{mark.column + 1}" if mark else shown
        raise UsageError(
            f"not valid YAML: {error.problem or error.context or error}",
            code="policy.syntax",
            location=place,
            hint="govtool policy schema is for editors that check as you type; docs/policies.md has examples",
        ) from error
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"not valid YAML: {error}", code="policy.syntax", location=shown) from error
    except RecursionError as error:
        raise UsageError("nested too deeply", code="policy.syntax", location=shown) from error
    finally:
        if loader is not None:
            loader.dispose()
    return document


class _Reader:
    """Turns composed nodes into values, as the safe loader would, and notes lines."""

    def __init__(self, document: PolicyDocument, loader: yaml.SafeLoader) -> None:
        self.document = document
        self.loader = loader
        self.count = 0
        self.open: set[int] = set()

    def read(self, node: yaml.Node, path: Key) -> Any:
        """The value of a node."""
        self.document.lines.setdefault(path, node.start_mark.line + 1)
        self.count += 1
        if self.count > MOST_NODES:
            raise self._wrong("too many values; aliases count every time", node)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if id(node) in self.open:
            raise self._wrong("the value contains itself", node)
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.read(item, (*path, i)) for i, item in enumerate(node.value)]
            return self._mapping(node, path)
        finally:
            self.open.discard(id(node))

    def _mapping(self, node: Any, path: Key) -> dict[Any, Any]:
        self.loader.flatten_mapping(node)
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._wrong("a key must be text", key_node)
            key = self._scalar(key_node)
            key = key if isinstance(key, str) else str(key_node.value)
            if key in found:
                raise self._wrong(f"the key {key!r} occurs twice", key_node)
            self.document.lines[(*path, key)] = key_node.start_mark.line + 1
            found[key] = self.read(value_node, (*path, key))
        return found

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        try:
            return self.loader.construct_object(node, deep=True)
        except ValueError as error:
            raise self._wrong(f"{node.value!r} is not possible: {error}", node) from error

    def _wrong(self, message: str, node: yaml.Node) -> UsageError:
        mark = node.start_mark
        return UsageError(
            message, code="policy.syntax", location=f"{self.document.file}:{mark.line + 1}:{mark.column + 1}"
        )
