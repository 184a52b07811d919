"""Records of data, and whether data still is what was recorded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from govtool.render.envelope import compact, envelope, json_lines
from govtool.render.runs import identity_object
from govtool.render.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.text import count, short

if TYPE_CHECKING:
    from govtool.app.verify import Verified
    from govtool.model.version import ContentIdentity, DatasetVersion
    from govtool.store import CommitResult

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")

_SENTENCES = {
    "match": "the data is what was recorded",
    "data-changed": "the data has changed without provenance",
    "data-missing": "there is provenance, but the data is gone",
    "no-provenance": "there is data, but nothing was recorded of it",
}


def snapshot_sentence(result: CommitResult, version: DatasetVersion) -> str:
    """One sentence on what was recorded."""
    commit = result.commit
    what = f"commit {commit.seq} ({short(commit.id)})" if result.created else f"recorded already, commit {commit.seq}"
    return f"{version.dataset}: {what} · {_identity(version.identity)} · run {version.run}"


def render_verified(form: str, result: Verified, store: str) -> Table | Iterable[str]:
    """The outcome in one of ``FORMATS``."""
    if form in ("json", "jsonl"):
        body = envelope(
            "verify/1",
            {
                "store": store,
                "dataset": result.dataset,
                "state": result.state,
                "found": identity_object(result.found),
                "recorded": identity_object(result.recorded.identity if result.recorded else None),
                "run": result.recorded.run if result.recorded else None,
                "ancestors": [
                    {"dataset": a.dataset, "digest": a.digest, "commit": a.commit}
                    for a in (result.recorded.ancestors if result.recorded else ())
                ],
            },
        )
        return json_lines(body) if form == "json" else [compact(body)]
    rows = [
        ("dataset", result.dataset),
        ("state", result.state),
        ("found", _identity(result.found) if result.found else "nothing"),
        ("recorded", _identity(result.recorded.identity) if result.recorded else "nothing"),
        ("run", result.recorded.run if result.recorded else ""),
    ]
    if form == "csv":
        return to_csv(("name", "value"), rows)
    table = Table(
        columns=(TableColumn("name", style="dim"), TableColumn("value")), rows=rows, summary=_SENTENCES[result.state]
    )
    return table if form == "table" else (plain if form == "plain" else markdown)(table)


def _identity(identity: ContentIdentity) -> str:
    what = f"{identity.kind} version {identity.version}" if identity.version is not None else identity.kind
    return f"{what} {identity.digest[:12]}, {count(identity.files, 'file')}, {identity.size:,} bytes"
