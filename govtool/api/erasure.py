"""Erasures applied: corrected copies with a certificate, and the check of a certificate."""

from __future__ import annotations

from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.api.arguments import checked

if TYPE_CHECKING:
    from govtool.answers.erasure_certificate import CertificateAnswer
    from govtool.app.project.requests import PathArgument


@checked
def apply_erasure(plan: PathArgument, to: PathArgument, *, store: PathArgument | None = None) -> CertificateAnswer:
    """Write corrected copies of every dataset that a plan on rows changes, with a certificate.

    >>> govtool.apply_erasure("plan.json", to="corrected/")  # doctest: +SKIP

    Originals are never written. Each copy is verified: the recorded plan is evaluated over the corrected inputs.

    Args:
        plan: The file that ``govtool erase plan --run RUN --format json`` wrote.
        to: A folder that is not there, or is empty; it is there as a whole, or not at all.
        store: The store that the plan was made of; by default that of the settings.

    Raises:
        UsageError: The folder is not new, or has to do with an original.
        FormatError: The file is no plan.
        SourceError: A file has changed since the plan was made (``source.changed``).
        EvidenceError: The store gives another plan now, or a copy is not what a replay gives.
        EngineError: No engine evaluates the plans, or writes a format.
    """
    from govtool.app.erasure.apply import apply_erasure

    return apply_erasure(Path(fspath(plan)), Path(fspath(to)), None if store is None else fspath(store))


@checked
def verify_erasure(certificate: PathArgument, folder: PathArgument | None = None) -> CertificateAnswer:
    """Check a certificate against the folder of corrected copies that it is about; ``problems`` lists what differs.

    Args:
        certificate: The file ``certificate.json``.
        folder: The folder; by default that of the certificate.

    Raises:
        UsageError: There is no such file or folder.
        FormatError: The file is no certificate.
    """
    from govtool.app.erasure.certify import verify_erasure

    return verify_erasure(Path(fspath(certificate)), None if folder is None else Path(fspath(folder)))
