"""A store with nothing but some SQL in it, for as long as a question takes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult
    from govtool.app.ingest.sql_options import SqlRequest


@contextmanager
def throwaway_store(request: SqlRequest) -> Iterator[tuple[str, IngestResult]]:
    """The URI of a store that is gone afterwards, with what its index left in the cache; and what was read.

    Raises:
        GovtoolError: as ``govtool.app.ingest.sql.ingest_sql``.
    """
    from govtool.app.ingest.sql import ingest_sql
    from govtool.store import Store
    from govtool.store.cache import cache_dir

    with tempfile.TemporaryDirectory(prefix="govtool-", ignore_cleanup_errors=True) as folder:
        uri = str(Path(folder) / "store")
        store = Store.init(uri)
        result = ingest_sql(store, request)
        try:
            yield uri, result
        finally:
            any_commit = cache_dir(store.store_id, "0")
            for left in any_commit.parent.glob(f"{store.store_id}.*"):
                shutil.rmtree(left, ignore_errors=True)
