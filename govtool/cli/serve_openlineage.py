"""``govtool serve openlineage``: receive OpenLineage events over HTTP and commit them."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.shared.options import AuthorOption, BranchOption, DialectOption, StoreOption
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_OK, EXIT_STORE, GovtoolError, UsageError

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult


def serve_openlineage(
    ui: Ui,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 5000,
    host: Annotated[
        str,
        typer.Option("--host", metavar="ADDRESS", help="Address to listen on. Use a token where others reach it."),
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="NAME", help="A name that clients call this machine by, beside localhost."
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="A file with the bearer token that clients must send. Default: GOVTOOL_SERVE_TOKEN, else none.",
        ),
    ] = None,
    source: Annotated[
        str, typer.Option("--source", metavar="NAME", help="The source that events are added to.")
    ] = "openlineage",
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.05, max=3600, help="How often to commit.")
    ] = 5.0,
    spool: Annotated[
        Path | None,
        typer.Option(
            "--spool",
            metavar="FOLDER",
            help="Folder for events that wait for their commit. Default: below ~/.local/state.",
        ),
    ] = None,
    dialect: DialectOption = None,
    author: AuthorOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """Receive OpenLineage events over HTTP and commit them.

      govtool serve openlineage --port 5000
      OPENLINEAGE_URL=http://127.0.0.1:5000 airflow tasks run …

    POST /api/v1/lineage takes an event or a list of events, gzip or not. An accepted event is on disk before the
    answer, and committed within --every seconds. When interrupted, the server commits the accepted events and ends.
    Interrupted twice, it ends at once, and its next start commits the rest. Requests of web pages are refused.
    """
    from govtool.app.ingest.sql_options import check_dialect
    from govtool.app.project.project import existing_branch, open_store
    from govtool.app.serve.admission import Admission, bearer_token, host_name, is_loopback
    from govtool.app.serve.committer import CommitTarget, Committer
    from govtool.app.serve.endpoint import PATH, LineageServer
    from govtool.app.serve.event_spool import EventSpool, spool_folder
    from govtool.render.commits import ingest_summary
    from govtool.render.errors import error_lines
    from govtool.render.layout.table import Span

    admission = Admission(frozenset(host_name(name) for name in (host, *(allow_host or ()))), bearer_token(token_file))
    opened = open_store(store)
    if not admission.token and not is_loopback(host):
        ui.remark([Span(f"anyone who reaches {host} can send events: --token-file FILE")])
    target = CommitTarget(opened, source, check_dialect(dialect or ""), existing_branch(opened, branch), author)

    def report(outcome: IngestResult | GovtoolError) -> None:
        if isinstance(outcome, GovtoolError):
            for line in error_lines(outcome):
                ui.remark(line)
        elif outcome.created:
            ui.note(ingest_summary(outcome))

    waiting = EventSpool(spool or spool_folder(opened, source))
    committer = Committer(waiting, target, report, every)
    try:
        server = LineageServer((host, port), waiting, committer.notice, admission)
    except OSError as error:
        waiting.close()
        raise UsageError(
            f"cannot listen there: {(error.strerror or str(error)).lower()}",
            code="usage.address",
            location=f"{host}:{port}",
            hint="--port 0 takes a free port",
        ) from error
    ended = threading.Event()

    def end(*_: object) -> None:
        if ended.is_set():  # the second time: what was accepted is in the spool
            raise KeyboardInterrupt
        ended.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        committer.start()
        listening = threading.Thread(target=server.serve_forever, name="listener", daemon=True)
        listening.start()
        place = f"[{host}]" if ":" in host else host
        ui.out.write(f"http://{place}:{server.server_address[1]}{PATH}\n")
        ui.out.flush()
        ended.wait()
        server.stop()
        committer.stop()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        waiting.close()
    return EXIT_STORE if committer.failed else EXIT_OK
