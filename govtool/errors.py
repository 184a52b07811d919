"""The exception tree and the exit codes of govtool, in one place.

    GovtoolError                exit  code prefix
    ├── UsageError               2    usage.*      wrong arguments, unknown names, bad configuration
    │   ├── UnknownNameError     2    usage.unknown-*     with the nearest names
    │   └── AmbiguousNameError   2    usage.ambiguous-*   with the candidates
    ├── EvidenceError            3    evidence.*   --strict, --min-coverage not met
    ├── SourceError              4    source.*     a database that is read from: connection, credentials, driver
    ├── EngineError              4    engine.*     a worker process died; Spark is missing or failed
    └── StoreError               4    store.*      store, credentials, network, integrity
        ├── IntegrityError       4    store.corrupt-*
        ├── FormatError          4    store.format-*      a newer or foreign store
        └── ConflictError        4    store.conflict

Every error says what happened (``message``), where (``location``), the nearest names (``nearest``) and which command to
run next (``hint``). Findings (exit 1) and an interrupt (exit 130) are outcomes, not errors.
"""

from __future__ import annotations

import errno
from collections.abc import Collection
from typing import ClassVar

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_EVIDENCE = 3
EXIT_STORE = 4
EXIT_INTERRUPTED = 130
EXIT_INTERNAL = 70
"""A bug in govtool (``EX_SOFTWARE`` of sysexits.h): never the code of an answer."""


class GovtoolError(Exception):
    """Base of all errors that govtool raises on purpose.

    Args:
        message: What is wrong, in one sentence without a trailing period.
        code: A stable dotted identifier such as ``usage.unknown-column``.
        location: Where: ``file:line:column``, a URI or an option name.
        nearest: Names that the user may have meant, best first.
        hint: What to do next; a command where there is one.

    Attributes:
        items: Where several things are wrong, each of them: shown as a line of its own below the message.
    """

    exit_code: ClassVar[int] = EXIT_USAGE
    default_code: ClassVar[str] = "usage.error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        location: str | None = None,
        nearest: tuple[str, ...] = (),
        hint: str | None = None,
    ) -> None:
        """Store the parts; see the class docstring."""
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.location = location
        self.nearest = nearest
        self.hint = hint
        self.items: tuple[str, ...] = ()


class UsageError(GovtoolError):
    """Wrong arguments or configuration."""


class UnknownNameError(UsageError):
    """A dataset, column, ref or dialect that does not exist."""

    default_code = "usage.unknown-name"

    @classmethod
    def of_few(cls, noun: str, word: str, known: Collection[str], *, hint: str = "") -> UnknownNameError:
        """The error about a word that is none of a few: ``no mode fast``, with the nearest and all of them.

        Args:
            noun: What the words are, as in ``usage.unknown-<noun>``.
            word: What was given.
            known: What there is.
            hint: Instead of ``one of …``.
        """
        from difflib import get_close_matches

        return cls(
            f"no {noun} {word}",
            code=f"usage.unknown-{noun}",
            nearest=tuple(get_close_matches(word, known)),
            hint=hint or f"one of {', '.join(known)}",
        )


class AmbiguousNameError(UsageError):
    """A short name that several things answer to; ``nearest`` holds the candidates."""

    default_code = "usage.ambiguous-name"


class EvidenceError(GovtoolError):
    """The evidence does not suffice for the answer that was asked for."""

    exit_code = EXIT_EVIDENCE
    default_code = "evidence.insufficient"


class SourceError(GovtoolError):
    """A source, such as a database, cannot be reached or read."""

    exit_code = EXIT_STORE
    default_code = "source.error"


class EngineError(GovtoolError):
    """An engine, such as worker processes or Spark, failed; the store is as it was."""

    exit_code = EXIT_STORE
    default_code = "engine.error"


class DeliveryError(GovtoolError):
    """An endpoint that events are sent to cannot be reached, or does not take them."""

    exit_code = EXIT_STORE
    default_code = "delivery.error"


class StoreError(GovtoolError):
    """The store cannot be reached, read or written."""

    exit_code = EXIT_STORE
    default_code = "store.error"


class ExistingStoreError(StoreError):
    """There is a store already where one was to be made: a mistake of the command line, so exit code 2."""

    exit_code = EXIT_USAGE
    default_code = "store.exists"


class IntegrityError(StoreError):
    """The contents of the store are not what was written."""

    default_code = "store.corrupt"


class FormatError(StoreError):
    """The store has a format that this version does not read."""

    default_code = "store.format"


class ConflictError(StoreError):
    """Another writer won and the change could not be rebased."""

    default_code = "store.conflict"


_OF_THE_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def output_error(error: OSError, file: str) -> GovtoolError:
    """The error about an output file: of the disk (exit code 4, as of stdout), or of the given name (2)."""
    reason = f"cannot write it: {(error.strerror or str(error)).lower()}"
    if error.errno in _OF_THE_DISK:
        return StoreError(reason, code="output.io", location=file)
    return UsageError(reason, code="usage.output", location=file)
