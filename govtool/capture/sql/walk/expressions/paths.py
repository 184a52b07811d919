"""Paths below a column: struct fields, array elements, keys of JSON values and maps."""

from __future__ import annotations

from govtool.capture.sql.syntax import nodes


def joined_path(parts: list[str]) -> str:
    """Join steps to a canonical path; below the first key of a JSON value plain keys are written as names."""
    text = ""
    inside = False
    for part in parts:
        if part.startswith("['"):
            key = part[2:-2]
            part = f".{key}" if inside and key.isidentifier() and key == key.lower() else part
            inside = True
        elif not part.startswith("["):
            part = f".{part}"
        text += part
    return text.lstrip(".")


def json_key(key: str) -> str:
    """Return one step of a JSON or map path: ``['user']``."""
    return "['" + key.replace("\\", "\\\\").replace("'", "\\'") + "']"


def json_path(path: object) -> list[str]:
    """Return the steps of a JSON path: ``['user']`` first, plain keys below as names, elements as ``[]``."""
    steps: list[str] = []
    if isinstance(path, nodes.JSONPath):
        for part in path.expressions:
            if isinstance(part, nodes.JSONPathKey) and isinstance(part.this, str):
                plain = steps and part.this.isidentifier() and part.this == part.this.lower()
                steps.append(part.this if plain else json_key(part.this))
            elif isinstance(part, nodes.JSONPathRoot):
                continue
            else:
                steps.append("[]")
    elif isinstance(path, nodes.Literal) and path.is_string:
        text = str(path.this)
        if text.startswith("{") and text.endswith("}"):  # PostgreSQL's #> '{a,b}'
            steps.extend(
                json_key(step.strip()) if not step.strip().isdigit() else "[]"
                for step in text[1:-1].split(",")
                if step.strip()
            )
        elif text.isidentifier():
            steps.append(json_key(text))
    elif isinstance(path, nodes.Literal):
        steps.append("[]")
    return steps
