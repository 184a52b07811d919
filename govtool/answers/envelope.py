"""The envelope of JSON answers: ``{"govtool": version, "schema": "impact/1", …}``."""

from __future__ import annotations

from collections.abc import Mapping

from govtool.release import __version__


def envelope(schema: str, body: Mapping[str, object]) -> dict[str, object]:
    """Put version and schema name (``impact/1``) in front of an answer."""
    return {"govtool": __version__, "schema": schema, **body}
