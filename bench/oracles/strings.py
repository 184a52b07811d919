"""Every SQL text of sqlglot's own tests: nothing of it may make the extractor raise."""

from __future__ import annotations

import ast
import re
import tarfile
from collections.abc import Iterator

from sqlglot.dialects.dialect import Dialect

from bench.corpora import sdist


def sqlglot_texts() -> Iterator[tuple[str, str]]:
    """Pairs of a dialect and a text: the fixtures of the optimizer, and every string of the tests of dialects."""
    with tarfile.open(sdist()) as archive:
        for member in archive:
            found = re.search(r"/tests/(?:fixtures/(?:.*/)?(\w+)\.sql|dialects/test_(\w+)\.py)$", member.name)
            file = archive.extractfile(member) if found else None
            if found is None or file is None:
                continue
            text = file.read().decode()
            if found[2]:
                dialect = found[2] if found[2] in Dialect.classes else ""
                for value in _strings(text):
                    yield dialect, value
            elif found[1] == "identity":  # one statement a line
                yield from (("", line) for line in text.splitlines() if line.strip())
            else:
                for block in re.split(r"\n\s*\n", text):
                    dialect = re.search(r"^# dialect: *(\w+)", block, re.MULTILINE)
                    plain = re.sub(r"^#.*$", "", block, flags=re.MULTILINE).strip()
                    if plain:
                        yield (dialect[1] if dialect and dialect[1] in Dialect.classes else ""), plain


def _strings(source: str) -> Iterator[str]:
    """The string constants of a test module that may be SQL, each once."""
    found = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    yield from dict.fromkeys(value for value in found if isinstance(value, str) and re.search(r"\s", value))
