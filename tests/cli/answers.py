"""JSON answers, held to their schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

_SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


def check(answer: Any, name: str) -> Any:
    """An answer, as text or taken apart, if it is as ``docs/schemas`` says: ``check(done.out, "impact-1")``."""
    body = json.loads(answer) if isinstance(answer, str) else answer
    jsonschema.validate(body, json.loads((_SCHEMAS / f"{name}.json").read_text()))
    return body
