"""Errors of stores name the settings of the cloud that the store is in."""

from __future__ import annotations

import pytest

from govtool.store.backends.failures import translate


class PermissionDeniedError(Exception):
    """As obstore raises it."""


@pytest.mark.parametrize(
    ("uri", "error", "code", "hint"),
    [
        (
            "gs://b/x",
            OSError("… http://metadata.google.internal/… timed out"),
            "store.credentials",
            "GOOGLE_APPLICATION",
        ),
        ("az://b/x", ValueError("Account must be specified"), "store.credentials", "AZURE_STORAGE_ACCOUNT_NAME"),
        ("az://b/x", OSError("http://169.254.169.254/metadata"), "store.credentials", "AZURE_STORAGE_ACCOUNT_KEY"),
        ("abfss://b/x", PermissionDeniedError("no"), "store.denied", "Storage Blob Data Contributor"),
        ("gs://b/x", PermissionDeniedError("no"), "store.denied", "roles/storage.objectUser"),
        ("s3://b/x", OSError("http://169.254.169.254/latest"), "store.credentials", "AWS_ACCESS_KEY_ID"),
        ("/srv/x", PermissionError(13, "no"), "store.denied", "permissions"),
    ],
)
def test_hints_are_those_of_the_cloud(uri, error, code, hint):
    found = translate(error, "open the store", uri)
    assert found.code == code
    assert hint in (found.hint or "")
    assert ("AWS" in (found.hint or "")) == uri.startswith("s3")
