"""Reads W3C PROV documents into the graph."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Unpack

from govtool.answers.coverage import Coverage
from govtool.answers.ingest import IngestResult
from govtool.app.ingest.payload import (
    CommitKeywords,
    IngestKey,
    IngestPayload,
    fact_fragments,
    ingest_once,
    run_fragments,
)
from govtool.app.ingest.reader_digest import BatchDigest
from govtool.app.ingest.sql_options import Progress, SourceText, file_name, root_of
from govtool.app.project.sources import named_source
from govtool.errors import EngineError, UsageError
from govtool.given_files import open_given
from govtool.model import Diagnostic

if TYPE_CHECKING:
    from govtool.store import Store


@dataclass(frozen=True, slots=True)
class ProvRequest:
    """PROV documents to read."""

    paths: tuple[str, ...]
    """Files and folders of PROV-JSON, PROV-N or PROV-JSONLD, or ``-`` for standard input (PROV-JSON)."""
    source: str | None = None
    replace: bool = False
    """True: a source that was read elsewhere may be replaced."""


def ingest_prov(
    store: Store,
    request: ProvRequest,
    *,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
    **commit: Unpack[CommitKeywords],
) -> IngestResult:
    """Read PROV documents, and commit the runs, datasets and lineage that they tell of.

    What is no PROV document is reported in the result and counted as opaque; the rest is ingested.

    Raises:
        RefusedIngestError: less was understood than ``demand`` asks for; nothing was committed.
        UsageError: nothing to read.
        StoreError: the commit could not be written; the store is as it was.
    """
    from govtool.capture.prov.derive import derive
    from govtool.capture.prov.document import ProvContent, read_document
    from govtool.model.shortfall import Shortfall

    if not request.paths:
        raise UsageError("nothing to read", code="usage.arguments", hint="govtool ingest prov document.json")
    _check_library()
    root = root_of(request.paths)
    source, origin = named_source("prov", request.paths, request.source, store=store, replace=request.replace)
    document = ProvContent()
    batch = BatchDigest("prov", source)
    files = good = 0
    for name, form, data in _texts(request.paths, root, stdin, progress):
        files += 1
        batch.add_values(name, form)
        if isinstance(data, Diagnostic):
            document.notes.append(data)
            continue
        batch.add_bytes(hashlib.sha256(data).digest())
        good += read_document(data, name, form, document)

    def extract() -> IngestPayload:
        derived = derive(document, source)
        coverage = Coverage(
            statements=derived.understood + derived.partial + files - good,
            understood=derived.understood,
            partial=derived.partial,
            opaque=files - good,
            ignored=0,
            runs_understood=derived.understood,
            runs_partial=derived.partial,
            runs_opaque=files - good,
        )
        unread = [note for note in document.notes if note.severity == "error"][: files - good]
        return IngestPayload(
            source,
            "",
            files,
            coverage,
            derived.derivations,
            derived.diagnostics,
            (*(Shortfall("opaque", note, 1, "", "") for note in unread), *derived.shortfalls),
            counts={"runs": len(derived.runs)},
            more=(*fact_fragments(source, derived.facts), *run_fragments(source, derived.runs)),
        )

    key = IngestKey("ingest prov", source, str(batch), files, SourceText(root), origin)
    return ingest_once(store, key, extract, **commit)


def _check_library() -> None:
    """Check that the extra is installed, before anything is read.

    Raises:
        EngineError: It is not (``engine.prov``).
    """
    if find_spec("prov") is None:
        raise EngineError(
            "PROV documents need the library prov, which is not installed",
            code="engine.prov",
            hint="pip install 'govtool[prov]'",
        )


def _texts(
    paths: tuple[str, ...], root: Path, stdin: IO[bytes] | None, progress: Progress | None
) -> Iterator[tuple[str, str, bytes | Diagnostic]]:
    """Name, format, and content or why there is none."""
    from govtool.capture.logs.read import find_logs
    from govtool.capture.prov.document import FORMATS, MAX_BYTES

    for number, path in enumerate(paths):
        if progress is not None:
            progress(number, len(paths))
        if path == "-":
            if stdin is None:
                raise UsageError("standard input is not available here", code="usage.stdin")
            yield "<stdin>", "json", _bounded(stdin, "<stdin>", MAX_BYTES)
            continue
        for file in find_logs(Path(path)):
            name = file_name(file, root)
            form = FORMATS.get(file.suffix.lower(), "json")
            try:
                with open_given(file) as raw:
                    yield name, form, _bounded(raw, name, MAX_BYTES)
            except OSError as error:
                message = f"cannot be read: {error.strerror or error}"
                yield name, form, Diagnostic("unreadable", "error", message, name)


def _bounded(raw: IO[bytes], name: str, most: int) -> bytes | Diagnostic:
    data = raw.read(most + 1)
    if len(data) <= most:
        return data
    return Diagnostic("too-large", "error", f"larger than {most // 1_000_000} MB", name)
