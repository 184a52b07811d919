"""Read and key: the scripts that an ingest names, how they are read, and a digest of all that decides the result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from govtool.app.ingest.payload import IngestKey
from govtool.app.ingest.reader_digest import reader_digest
from govtool.app.ingest.sql_options import SourceText, SqlRequest, options, root_of, scripts
from govtool.app.project.sources import SourceOrigin, named_source
from govtool.errors import UsageError
from govtool.model import Diagnostic

if TYPE_CHECKING:
    from pathlib import Path

    from govtool.capture.sql.extract import Options
    from govtool.capture.sql.files import Script
    from govtool.store import Store


@dataclass(frozen=True, slots=True)
class SqlTexts:
    """What a request names: scripts, and how they are read."""

    request: SqlRequest
    source: str
    origin: SourceOrigin
    settings: Options
    found: tuple[Script | Diagnostic, ...]
    text: SourceText

    @property
    def scripts(self) -> Iterator[Script]:
        """The scripts that could be read."""
        return (item for item in self.found if not isinstance(item, Diagnostic))

    @property
    def how(self) -> list[object]:
        """All but the texts that decides the result, as JSON values."""
        return self._how(project.digest for project in self.settings.projects)

    @property
    def how_read(self) -> list[object]:
        """All but the texts that decides how statements are read, as JSON values: without descriptions and owners."""
        return self._how(project.rendering_digest for project in self.settings.projects)

    def _how(self, projects: Iterable[str]) -> list[object]:
        settings, explain = self.settings, self.request.explain
        return [
            reader_digest("explained" if explain else "sql"),
            self.source,
            settings.dialect,
            settings.default_catalog,
            settings.default_schema,
            settings.namespace,
            settings.relation_from,
            sorted((key, repr(value)) for key, value in settings.variables.items()),
            None if settings.schema is None else repr(settings.schema),
            *projects,
            *(["explain"] if explain else ()),
        ]


def read_sql(store: Store, request: SqlRequest, stdin: IO[bytes] | None, *, replace_source: bool) -> SqlTexts:
    """Read what a request names.

    Raises:
        UsageError: As ``govtool.app.ingest.sql.ingest_sql``.
        SourceError: The catalog cannot be read.
    """
    if not request.paths:
        raise UsageError("nothing to read", code="usage.arguments", hint="govtool ingest sql FOLDER")
    root = root_of(request.paths)
    source, origin = named_source("sql", request.paths, request.source, store=store, replace=replace_source, root=root)
    from govtool.capture.dbt.folders import project_folders

    folders = project_folders(request.paths)
    settings = options(request, source, folders=folders)
    found = (*scripts(request, root, stdin, folders), *_hooks(settings, root))
    stdin_text = {i.file: i.text for i in found if not isinstance(i, Diagnostic) and i.file == "<stdin>"}
    return SqlTexts(request, source, origin, settings, found, SourceText(root, stdin_text))


def _hooks(settings: Options, root: Path) -> Iterator[Script]:
    """The SQL that dbt projects under the root run beside their models, as scripts of their dbt_project.yml."""
    from govtool.capture.dbt.folders import PROJECT_FILE
    from govtool.capture.sql.files import Script

    for project in settings.projects:
        if project.hooks and (root / project.folder / PROJECT_FILE).is_file():
            yield Script(f"{project.folder}/{PROJECT_FILE}".lstrip("/"), project.hooks)


def key_of(read: SqlTexts) -> IngestKey:
    """Return the identity of an ingest: its input and settings. The same again is the same batch."""
    digest = hashlib.sha256(json.dumps(read.how).encode())
    for item in read.found:
        texts = (item.file, item.code) if isinstance(item, Diagnostic) else (item.file, item.digest)
        for part in texts:
            data = (part or "").encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
    files = sum(1 for _ in read.scripts)
    return IngestKey("ingest sql", read.source, f"sql:{digest.hexdigest()}", files, read.text, read.origin)
