"""SQL text into the graph, in seven verbs: read, key, render, parse, resolve, fold, commit.

    read      scripts, options and the name of the source           ``read_sql``
    key       a digest of all that decides the result               ``key_of``; a batch that the head has ends here
    render    templates become SQL                                  ``ScriptMaker.render``
    parse     text becomes statements, and what they define         ``ScriptMaker.parse``, ``Batch.add``
    resolve   statements are walked, each when its turn comes       ``walk_all``
    fold      what a script leaves behind becomes derivations       ``PartMaker.part``
    commit    fragments replace those of the last ingest            ``ingest_once``

Read and key are in ``sql_texts``, render to fold in ``sql_extraction``.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from govtool.app.ingest.payload import IngestPayload, ingest_once
from govtool.app.ingest.sql_extraction import extracted
from govtool.app.ingest.sql_meter import SqlMeter, counting
from govtool.app.ingest.sql_texts import key_of, read_sql
from govtool.capture.sql.collector import uncollected
from govtool.store.names import DEFAULT_BRANCH

if TYPE_CHECKING:
    from govtool.answers.ingest import CoverageDemand, IngestResult
    from govtool.app.ingest.logs.request import Report
    from govtool.app.ingest.sql_options import Progress, SqlRequest
    from govtool.store import Store


def ingest_sql(
    store: Store,
    request: SqlRequest,
    *,
    message: str | None = None,
    author: str | None = None,
    branch: str = DEFAULT_BRANCH,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
    report: Report | None = None,
    drop_unreadable: bool = False,
    replace_source: bool = False,
    demand: CoverageDemand | None = None,
) -> IngestResult:
    """Read SQL, and commit its lineage to the store.

    What cannot be read or understood is reported in the result and counted in the commit; the rest is ingested. A file
    that cannot be read or understood any more keeps what it said before, unless ``drop_unreadable`` is set; see
    ``govtool.app.ingest.stale``. ``progress`` is called with parts done and in all, ``report`` with stage, rate and
    counts as well.

    Raises:
        UsageError: nothing to read, an unknown dialect, an unreadable schema, a source that was read elsewhere.
        RefusedIngestError: less was understood than ``demand`` asks for; nothing was committed.
        SourceError: the catalog cannot be read.
        StoreError: the commit could not be written; the store is as it was.
    """
    keeps, with_texts = not drop_unreadable, demand is not None and demand.shortfalls
    with uncollected():
        read = read_sql(store, request, stdin, replace_source=replace_source)
        key = key_of(read)
        meter = SqlMeter(report or counting(progress))

        def extract() -> IngestPayload:
            return extracted(store, branch, read, meter, keeps=keeps, with_texts=with_texts)

        return ingest_once(
            store,
            key,
            extract,
            message=message,
            author=author,
            branch=branch,
            demand=demand,
            without_stale=drop_unreadable,
        )
