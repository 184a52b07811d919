"""Delivery of OpenLineage events to an endpoint: in order, again after failures, within a deadline.

An event may arrive twice, where an answer was lost: receivers merge by run, job and dataset, so that sending the same
again changes nothing.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from govtool.answers.delivery import EventDelivery, RejectedEvent
from govtool.app.event_delivery.client import EndpointAnswer, EventClient, EventEndpoint, NoAnswerError
from govtool.errors import DeliveryError

_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
_THIS_EVENT = frozenset({400, 409, 413, 422})
"""Statuses that are about the event that was sent; any other is about the endpoint, and ends the delivery."""
_MOST_REJECTED_IN_A_ROW = 20
"""So many rejected events from the start: the endpoint wants none of them."""


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """The number of attempts for an event, the pauses between them, and the time for everything.

    Attributes:
        attempts: At most so often for one event.
        timeout: Seconds for one request.
        deadline: Seconds for all events.
        first: The longest first pause in seconds; it doubles with each attempt, up to ``longest``. A pause is at least
            half as long, and as long as the endpoint requests.
        longest: In seconds.
        sleep: Waits for so many seconds.
        clock: Seconds that only go forward.
    """

    attempts: int = 6
    timeout: float = 10.0
    deadline: float = 300.0
    first: float = 0.5
    longest: float = 20.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def pause(self, attempt: int, requested: float | None) -> float:
        """Seconds to wait after a failed attempt, the first being number 1."""
        longest = min(self.first * 2 ** (attempt - 1), self.longest)
        return max(random.uniform(longest / 2, longest), requested or 0.0)


class _Failure(NamedTuple):
    """An attempt that may be made again."""

    reason: str
    retry_after: float | None = None


@dataclass(slots=True)
class _Progress:
    """How far a delivery is."""

    total: int
    sent: int = 0
    retries: int = 0
    rejected: list[RejectedEvent] = field(default_factory=list)

    def error(self, reason: str, *, code: str, hint: str) -> DeliveryError:
        """The error that ends the delivery, with what was delivered until then."""
        return DeliveryError(f"{reason}; {self.sent} of {self.total} events are delivered", code=code, hint=hint)


def deliver(
    events: Sequence[dict[str, Any]], endpoint: EventEndpoint, policy: DeliveryPolicy | None = None
) -> EventDelivery:
    """Send events one by one, in their order.

    Raises:
        DeliveryError: The endpoint cannot be reached (``delivery.unreachable``), refuses all (``delivery.refused``),
            or the deadline is over (``delivery.deadline``). The message says how many events it has.
    """
    chosen = policy or DeliveryPolicy()
    client, progress = EventClient(endpoint), _Progress(len(events))
    ends = chosen.clock() + chosen.deadline
    try:
        for number, event in enumerate(events, 1):
            body = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")
            answer = _answered(client, body, chosen, ends, progress)
            if answer.status < 300:
                progress.sent += 1
            else:
                _reject(progress, RejectedEvent(number, _named(event), answer.status, answer.text))
    finally:
        client.close()
    return EventDelivery(endpoint.url, progress.sent, tuple(progress.rejected), progress.retries)


def _answered(
    client: EventClient, body: bytes, policy: DeliveryPolicy, ends: float, progress: _Progress
) -> EndpointAnswer:
    """The answer to one event: it was taken, or it was rejected."""
    reason = ""
    for attempt in range(1, policy.attempts + 1):
        left = ends - policy.clock()
        if left <= 0:
            raise _late(progress, policy)
        outcome = _attempt(client, body, min(policy.timeout, left))
        if isinstance(outcome, EndpointAnswer):
            if outcome.status < 300 or outcome.status in _THIS_EVENT:
                return outcome
            raise _refused(progress, outcome)
        reason = outcome.reason
        if attempt == policy.attempts:
            break
        pause = policy.pause(attempt, outcome.retry_after)
        if policy.clock() + pause >= ends:
            raise _late(progress, policy, reason)
        progress.retries += 1
        policy.sleep(pause)
    raise progress.error(
        f"{reason}, {policy.attempts} times", code="delivery.unreachable", hint="send again: it changes nothing"
    )


def _attempt(client: EventClient, body: bytes, seconds: float) -> EndpointAnswer | _Failure:
    try:
        answer = client.post(body, seconds)
    except NoAnswerError as error:
        return _Failure(str(error))
    if answer.status in _AGAIN:
        return _Failure(f"the endpoint answers {_shown(answer)}", answer.retry_after)
    return answer


def _reject(progress: _Progress, event: RejectedEvent) -> None:
    """Note an event that was rejected.

    Raises:
        DeliveryError: Nothing but rejections so far.
    """
    progress.rejected.append(event)
    if not progress.sent and len(progress.rejected) == _MOST_REJECTED_IN_A_ROW:
        raise _refused(progress, EndpointAnswer(event.status, event.reason))


def _refused(progress: _Progress, answer: EndpointAnswer) -> DeliveryError:
    hints = {
        401: "--token-file FILE, or OPENLINEAGE_API_KEY",
        403: "a token that may write: --token-file FILE",
        404: "the address of the service: --to http://localhost:5000",
        400: "--run-events, where only runs are accepted",
        422: "--run-events, where only runs are accepted",
    }
    moved = "redirections are not followed: give --to the address that it redirects to"
    hint = moved if 300 <= answer.status < 400 else hints.get(answer.status, "see the log of the endpoint")
    return progress.error(f"the endpoint answers {_shown(answer)}", code="delivery.refused", hint=hint)


def _late(progress: _Progress, policy: DeliveryPolicy, reason: str = "") -> DeliveryError:
    why = f" ({reason})" if reason else ""
    return progress.error(
        f"the deadline of {policy.deadline:g} seconds is over{why}",
        code="delivery.deadline",
        hint="--deadline SECONDS; send again: it changes nothing",
    )


def _shown(answer: EndpointAnswer) -> str:
    return f"{answer.status}: {answer.text}" if answer.text else str(answer.status)


def _named(event: dict[str, Any]) -> str:
    """What an event is about, for a message."""
    about = event.get("job") or event.get("dataset") or {}
    return f"{about.get('namespace', '')}/{about.get('name', '')}"
