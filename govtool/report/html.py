"""A report as one HTML file: data, style and scripts in it, and nothing fetched from anywhere.

The Content-Security-Policy names the one style and the one script by their hashes and forbids everything else:
requests, frames, forms, inline handlers, ``eval``; with Trusted Types the script cannot parse text as HTML either. The
data is JSON in a block that no browser runs. Names and SQL are other people's texts: in the block their ``<`` and
everything outside of printable ASCII that could end it, or reorder it on a screen, is escaped.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from govtool.report.escaping import INVISIBLE, UNSAFE

SCRIPTS = (
    *("graph.js", "placement.js", "arrange.js", "route.js", "picture.js", "details.js", "lists.js"),
    *("scene.js", "trace.js", "workflow.js", "page.js", "address.js", "controls.js"),
)
"""The files of the one script, in their order."""
STYLE = "report.css"
TEMPLATE = "report.html"

_HOLE = re.compile(r"@([A-Z]+)@")


def page(data: Mapping[str, object], *, title: str, fallback: str) -> str:
    """The file.

    Args:
        data: The JSON value that the scripts draw.
        title: The title of the page, as text.
        fallback: HTML for readers without scripts.
    """
    style, script = asset(STYLE), _script()
    holes = {
        "TITLE": html.escape(INVISIBLE.sub("", title)),
        "POLICY": html.escape(_policy(style, script)),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": json_block(data),
        "FALLBACK": fallback,
    }
    return _HOLE.sub(lambda found: holes[found[1]], asset(TEMPLATE))


def json_block(data: Mapping[str, object]) -> str:
    r"""JSON that can stand in a ``<script>`` element and is harmless wherever it is shown.

    >>> json_block({"sql": "</script>\u2028"})
    '{"sql":"\\u003c/script\\u003e\\u2028"}'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@lru_cache(maxsize=16)
def asset(name: str) -> str:
    """The text of a file of ``assets/``."""
    return (files("govtool.report") / "assets" / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _script() -> str:
    """All scripts as one, in a scope of its own."""
    return '"use strict";\n(() => {\n' + "\n".join(asset(name) for name in SCRIPTS) + "\n})();\n"


def _policy(style: str, script: str) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
