"""The outcome of a delivery of events to an endpoint."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RejectedEvent:
    """An event that the endpoint did not take.

    Attributes:
        number: Its number among the events, from 1.
        name: The job or dataset that it is about.
        status: The status of HTTP.
        reason: The beginning of the answer.
    """

    number: int
    name: str
    status: int
    reason: str

    def to_dict(self) -> dict[str, object]:
        """The JSON value."""
        return {"number": self.number, "name": self.name, "status": self.status, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class EventDelivery:
    """Events that were sent to an endpoint.

    Attributes:
        to: The address, without secrets.
        sent: Events that it took.
        rejected: Events that it did not take, each with its reason.
        retries: Requests that were made again.
    """

    to: str
    sent: int
    rejected: tuple[RejectedEvent, ...] = ()
    retries: int = 0

    def to_dict(self) -> dict[str, object]:
        """The JSON value."""
        return {
            "to": self.to,
            "sent": self.sent,
            "rejected": [event.to_dict() for event in self.rejected],
            "retries": self.retries,
        }
