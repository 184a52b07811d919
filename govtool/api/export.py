"""The graph for other tools: OpenLineage events, returned or sent."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from govtool.api.arguments import Seconds, checked
from govtool.api.opened import OpenedVersion

if TYPE_CHECKING:
    from govtool.answers.delivery import EventDelivery
    from govtool.app.project.requests import PathArgument


class ExportQuestions(OpenedVersion):
    """The part of ``Graph`` that writes for other tools."""

    @checked
    def openlineage_events(
        self, *, source: str | None = None, queries: bool = False, run_events: bool = False
    ) -> list[dict[str, Any]]:
        """Return the graph as OpenLineage events.

        Args:
            source: Only this source; by default all of them.
            queries: Bare queries as well, of which nothing is made.
            run_events: Statements as runs, for receivers that take nothing else (DataHub, OpenMetadata, Google).

        Raises:
            UsageError: There is no such source (``usage.unknown-source``).
            StoreError: A fragment cannot be read.
        """
        from govtool.app.ingest.openlineage import export_openlineage

        exported = export_openlineage(self._reader, self._commit, source=source, queries=queries, as_runs=run_events)
        return exported.events

    @checked
    def send_openlineage(
        self,
        to: str,
        *,
        token_file: PathArgument | None = None,
        timeout: Seconds = 10.0,
        deadline: Seconds = 300.0,
        source: str | None = None,
        queries: bool = False,
        run_events: bool = False,
    ) -> EventDelivery:
        """Send the graph as OpenLineage events to an endpoint such as Marquez or DataHub.

        Args:
            to: The address of the service, or of its endpoint.
            token_file: A file with the bearer token; by default ``OPENLINEAGE_API_KEY``, else none.
            timeout: Seconds for one request.
            deadline: Seconds for all of them.
            source: As for ``openlineage_events``.
            queries: As for ``openlineage_events``.
            run_events: As for ``openlineage_events``.

        Returns:
            How many events were taken, and those that were rejected.

        Raises:
            UsageError: The address or the token is none.
            DeliveryError: The endpoint cannot be reached, refuses everything, or the deadline is over.
        """
        from govtool.app.event_delivery.client import TOKEN_VARIABLE, event_endpoint
        from govtool.app.event_delivery.delivery import DeliveryPolicy, deliver
        from govtool.app.serve.admission import bearer_token

        file = None if token_file is None else os.fspath(token_file)
        endpoint = event_endpoint(to, bearer_token(file, TOKEN_VARIABLE))
        events: list[dict[str, Any]] = self.openlineage_events(source=source, queries=queries, run_events=run_events)
        return deliver(events, endpoint, DeliveryPolicy(timeout=timeout, deadline=deadline))
