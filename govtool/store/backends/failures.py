"""Errors of obstore, an object store's server or the operating system, as a StoreError with a way out.

Servers answer with an error code of their own (S3's and Google's XML, Azure's likewise); it says more than the HTTP
status, and more than the class of the exception that obstore makes of it. References: "Error responses" in the Amazon
S3 API Reference, "Status and error codes" of Azure Blob Storage.
"""

from __future__ import annotations

import errno
import re
from typing import NamedTuple

from govtool.errors import StoreError
from govtool.redaction import clean_text


class _Failure(NamedTuple):
    code: str
    what: str
    hint: str


_NOTHING_LOST = "then run the command again; nothing that was committed is lost"
_NO_BUCKET = _Failure(
    "store.missing-bucket",
    "the bucket does not exist",
    "create the bucket, or check its name, the region (AWS_REGION) and the endpoint (AWS_ENDPOINT_URL)",
)
_DENIED = _Failure(
    "store.denied",
    "permission denied",
    "these credentials need to read, write and list below this address (s3:GetObject, s3:PutObject, s3:ListBucket)",
)
_REFUSED = _Failure(
    "store.credentials",
    "the credentials were not accepted",
    "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
)
_EXPIRED = _Failure("store.credentials", "the credentials have expired", f"renew them; {_NOTHING_LOST}")
_SKEW = _Failure(
    "store.clock",
    "this machine's clock differs too much from the server's",
    f"set this machine's clock; {_NOTHING_LOST}",
)
_REGION = _Failure(
    "store.region", "the bucket is in another region", "set AWS_REGION to the region that the bucket is in"
)
_BUSY = _Failure("store.unreachable", "the server is overloaded or out of order", f"wait a little; {_NOTHING_LOST}")
_CONDITION = _Failure(
    "store.no-conditional-put",
    "the server does not know put-if-absent: two writers could overwrite each other's commits",
    "use a server that honours If-None-Match on PUT (AWS S3, MinIO, SeaweedFS, …) or a local folder",
)
NO_CREDENTIALS = _Failure(
    "store.credentials",
    "no credentials were found",
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; AWS_SKIP_SIGNATURE=true for a public bucket",
)
"""Nothing says who we are."""


class _Cloud(NamedTuple):
    """What to set where a cloud does not let us in."""

    missing: str
    refused: str
    rights: str


_AZURE_ACCOUNT = "AZURE_STORAGE_ACCOUNT_NAME"
_GOOGLE = _Cloud(
    "set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account's key, or run gcloud auth application-default "
    "login",
    "check GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login again",
    "this account needs to read, write and list below this address (roles/storage.objectUser)",
)
_AZURE_SETTINGS = (
    f"{_AZURE_ACCOUNT} and AZURE_STORAGE_ACCOUNT_KEY, or AZURE_CLIENT_ID, AZURE_CLIENT_SECRET and AZURE_TENANT_ID"
)
_AZURE = _Cloud(
    f"set {_AZURE_SETTINGS}",
    f"check {_AZURE_SETTINGS}",
    "this account needs to read, write and list in this container (Storage Blob Data Contributor)",
)
_CLOUDS = {
    "gs": _GOOGLE,
    **dict.fromkeys(("az", "azure", "abfs", "abfss", "adl"), _AZURE),
}
"""By scheme of the address; all others are S3 and what speaks its language."""

_BY_SERVER_CODE = {
    "NoSuchBucket": _NO_BUCKET,
    "ContainerNotFound": _NO_BUCKET,
    "AccessDenied": _DENIED,
    "AllAccessDisabled": _DENIED,
    "AccountProblem": _DENIED,
    "AuthorizationFailure": _DENIED,
    "AuthorizationPermissionMismatch": _DENIED,
    "InvalidAccessKeyId": _REFUSED,
    "SignatureDoesNotMatch": _REFUSED,
    "InvalidToken": _REFUSED,
    "InvalidSecurity": _REFUSED,
    "AuthenticationFailed": _REFUSED,
    "ExpiredToken": _EXPIRED,
    "ExpiredTokenException": _EXPIRED,
    "TokenRefreshRequired": _EXPIRED,
    "RequestExpired": _EXPIRED,
    "RequestTimeTooSkewed": _SKEW,
    "PermanentRedirect": _REGION,
    "TemporaryRedirect": _REGION,
    "AuthorizationHeaderMalformed": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "SlowDown": _BUSY,
    "ServiceUnavailable": _BUSY,
    "InternalError": _BUSY,
    "RequestTimeout": _BUSY,
    "ServerBusy": _BUSY,
    "NotImplemented": _CONDITION,
}
_SERVER_CODE = re.compile(r"<Code>([A-Za-z]+)</Code>")
_REGION_NAME = re.compile(r"<Region>([a-z0-9-]{3,40})</Region>|expecting '([a-z0-9-]{3,40})'")
_STATUS = re.compile(r"status(?: code)?:? (\d{3})((?: [A-Z][A-Za-z-]*\b(?!'))*)")
"""The number of an answer, and its name."""
_OS_ERROR = re.compile(r"\(os error (\d+)\)")
_ABSENT = ("NoSuchKey", "NotFound", "BlobNotFound")
_METADATA_SERVICES = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")
_NOISE = re.compile(r"^(Generic \w+ error: )?(Error performing list request: )?(Error performing )?")


def is_absent(error: Exception) -> bool:
    """Return whether a FileNotFoundError means that the object is not there, and not that its bucket is gone."""
    found = _SERVER_CODE.search(str(error))
    return found is None or found[1] in _ABSENT


def translate(error: Exception, action: str, uri: str) -> StoreError:
    """The StoreError for what obstore or the operating system raised.

    Args:
        error: The cause.
        action: What was tried, as in ``write log/main/000000000001.json``.
        uri: The store.
    """
    if isinstance(error, StoreError):
        return error
    whole = str(error)
    failure = _remote(error, whole) or _local(error, whole)
    if failure is _DENIED and action.startswith("delete ") and uri.startswith("s3"):
        failure = failure._replace(hint="removing objects needs s3:DeleteObject below this address, too")
    failure = _for_cloud(failure, uri.split("://", 1)[0].lower() if "://" in uri else "", whole)
    return StoreError(
        f"cannot {action}: {clean_text(failure.what)}", code=failure.code, location=uri, hint=failure.hint
    )


def _for_cloud(failure: _Failure, scheme: str, text: str) -> _Failure:
    """The same failure with the settings of the cloud that the store is in; those of AWS stand as they are."""
    cloud = _CLOUDS.get(scheme)
    if cloud is None:
        return failure
    if "Account must be specified" in text:
        return _Failure("store.credentials", "the storage account is not named", f"set {_AZURE_ACCOUNT}")
    if failure is NO_CREDENTIALS:
        return failure._replace(hint=cloud.missing)
    if failure is _REFUSED:
        return failure._replace(hint=cloud.refused)
    return failure._replace(hint=cloud.rights) if failure is _DENIED else failure


def _remote(error: Exception, text: str) -> _Failure | None:
    """Describe a server's error, or what kept us from reaching it; ``None`` if this is not about a server."""
    found = _SERVER_CODE.search(text)
    failure = _BY_SERVER_CODE.get(found[1]) if found else None
    if failure is _REGION:
        return _in_region(text)
    if failure is not None:
        return failure
    status = _STATUS.search(text)
    kind = type(error).__name__
    if any(address in text for address in _METADATA_SERVICES):
        return NO_CREDENTIALS
    if (status and status[1] in ("301", "307", "308")) or "redirect without LOCATION" in text:
        return _in_region(text)
    if (status and status[1] in ("501", "405")) or kind == "NotSupportedError":
        return _CONDITION
    if kind == "UnauthenticatedError":
        return _REFUSED
    if kind == "PermissionDeniedError":
        return _DENIED
    if status and (status[1][0] == "5" or status[1] == "429"):  # Google Cloud Storage answers 429 to many writes
        return _BUSY._replace(what=f"the server answered {status[1]}")
    return _odd_answer(status, found) if status and not isinstance(error, FileNotFoundError) else None


def _odd_answer(status: re.Match[str], code: re.Match[str] | None) -> _Failure:
    """An answer that no request of a store should get, such as 412 to a read, which has no condition."""
    named = f" ({code[1]})" if code else ""
    return _Failure(
        "store.unreachable",
        f"the server answered {status[1]}{status[2]}{named}, which is no answer to such a request",
        "check the store's address, and what stands before it: a proxy, a gateway, rules of the bucket",
    )


def _in_region(text: str) -> _Failure:
    found = _REGION_NAME.search(text)
    region = (found[1] or found[2]) if found else None
    if region is None:
        return _REGION
    return _REGION._replace(what=f"the bucket is in region {region}", hint=f"set AWS_REGION={region}")


def _local(error: Exception, text: str) -> _Failure:
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (found := _OS_ERROR.search(text)):
        number = int(found[1])
    if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        what = "a limit on file sizes was reached" if number == errno.EFBIG else "no space left"
        return _Failure("store.full", what, f"free some space; {_NOTHING_LOST}")
    if number == errno.EROFS:
        hint = "use a store that you may write to: --store"
        return _Failure("store.read-only", "the file system is read-only", hint)
    if number in (errno.EACCES, errno.EPERM):
        return _Failure("store.denied", "permission denied", "check the permissions of this store")
    if number in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP) or isinstance(error, FileNotFoundError):
        what = "the place does not exist (any more)"
        return _Failure("store.missing", what, "check the address: --store, GOVTOOL_STORE")
    what = _NOISE.sub("", text.split("\n", 1)[0].strip()) or type(error).__name__
    if number is not None and number not in _NETWORK:
        return _Failure("store.io", what, "check the disk; nothing that was committed is lost")
    return _Failure("store.unreachable", what, "check the store's address, the network, and that the server is up")


_NETWORK = frozenset(
    {
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.ECONNABORTED,
        errno.EPIPE,
        errno.ETIMEDOUT,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
        errno.ENETDOWN,
    }
)
