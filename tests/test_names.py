"""Names are the field's: no private words in identifiers, no two public classes of one name (CONTRIBUTING, Glossary)."""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections import defaultdict
from pathlib import Path

import govtool

PACKAGE = Path(govtool.__file__).parent
PRIVATE = frozenset(
    [
        "said",
        "say",
        "says",
        "saying",
        "ask",
        "asks",
        "asked",
        "asking",
        "told",
        "tell",
        "tells",
        "teller",
        "untold",
        "hush",
        "hushed",
        "shelf",
        "parked",
        "aside",
        "keeping",
        "perhaps",
        "patience",
        "steered",
        "heard",
        "hear",
        "hears",
        "learn",
        "learnt",
        "spoken",
        "meaning",
        "meant",
        "play",
        "plays",
    ]
)
"""Words that once stood for a payload, a request, a redaction, a cache …: write the field's word."""
ALLOWED = frozenset({"tell"})
"""Identifiers with such a word. ``tell`` is the method of Python's files. This set may only shrink."""
SAME_CLASS = frozenset({"Edge"})
"""Names that several public classes have: rules in Python see `govtool.policy.view.Edge`. This set may only shrink."""

VOCABULARIES = ("records/plan/",)
"""Folders whose classes are a language of their own, always read beside one another: operators and expressions of a
plan have the same names in every plan language. Within a folder names are unique, too."""


def words(identifier: str) -> set[str]:
    """``_ScriptMaker`` is script and maker."""
    return set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", identifier).lower().split("_"))


@functools.cache
def identifiers(file: Path) -> set[str]:
    """All names in the code of a file; those of an f-string apart, which are names elsewhere."""
    text = io.BytesIO(file.read_bytes())
    return {token.string for token in tokenize.tokenize(text.readline) if token.type == tokenize.NAME}


def test_no_identifier_has_a_private_word():
    found = {
        (file.relative_to(PACKAGE).as_posix(), name)
        for file in PACKAGE.rglob("*.py")
        for name in identifiers(file) - ALLOWED
        if words(name) & PRIVATE
    }
    assert sorted(found) == []


def test_no_module_is_called_by_a_private_word():
    assert [file.name for file in PACKAGE.rglob("*.py") if words(file.stem) & PRIVATE] == []


def test_no_two_public_classes_have_one_name():
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                place = file.relative_to(PACKAGE).as_posix()
                language = next((folder for folder in VOCABULARIES if place.startswith(folder)), "")
                homes[language + node.name].append(place)
    assert {name: files for name, files in homes.items() if len(files) > 1 and name not in SAME_CLASS} == {}


def test_the_exceptions_are_still_needed():
    used = set().union(*(identifiers(file) for file in PACKAGE.rglob("*.py")))
    assert used >= ALLOWED | SAME_CLASS
