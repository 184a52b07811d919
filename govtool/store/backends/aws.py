"""The usual AWS environment that obstore does not read itself: the profile and the shared files.

The order is that of the AWS SDKs ("Standardized credential providers", "Service-specific endpoints" in the AWS SDKs and
Tools Reference Guide): variables of the environment, then the profile (``AWS_PROFILE``, else ``default``) in
``~/.aws/credentials`` and ``~/.aws/config``, then what the machine itself is given (container, EC2). Keys, a
``credential_process``, region and endpoint are read here; what takes a conversation with AWS (single sign-on, roles to
assume) is left to boto3 where it is installed.
"""

from __future__ import annotations

import configparser
import difflib
import json
import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from govtool.errors import StoreError, UnknownNameError, UsageError
from govtool.store.backends.failures import NO_CREDENTIALS
from govtool.store.backends.retry import RetryPolicy

_PROCESS_SECONDS = 60
_REGION = "us-east-1"
_METADATA = "http://169.254.169.254"
_TALKS_TO_AWS = ("sso_session", "sso_start_url", "role_arn", "login_session", "web_identity_token_file")
_FROM_THE_MACHINE = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_YES = ("1", "true", "yes", "on")


class Profile(NamedTuple):
    """The settings of one profile, the credentials file first; nested ones are ``s3.addressing_style`` and so on."""

    name: str
    settings: Mapping[str, str]


def s3_options(environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Keyword arguments for obstore's ``from_url`` that say what the environment and the profile say.

    Args:
        environment: Variables; by default those of the process.

    Raises:
        UsageError: ``usage.aws-profile`` for a profile that does not exist; ``usage.aws-config`` for a file or value
            that cannot be read.
        StoreError: ``store.credentials`` if nothing says who we are.
    """
    env = os.environ if environment is None else environment
    profile = read_profile(env)
    settings = profile.settings
    options: dict[str, Any] = {"client_options": {}}
    region = env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or settings.get("region")
    if region:
        options["region"] = region
    endpoint = _endpoint(env, settings, region)
    if endpoint:
        options["endpoint"] = endpoint
        # Whoever names an endpoint without TLS, as for a server on loopback, means it.
        options["client_options"] = {"allow_http": endpoint.lower().startswith("http://")}
    if bundle := env.get("AWS_CA_BUNDLE") or settings.get("ca_bundle"):
        options["client_options"]["root_certificate"] = _read(Path(bundle).expanduser()).encode()
    if settings.get("s3.addressing_style") == "virtual" and not endpoint:
        options["virtual_hosted_style_request"] = True
    return options | _credentials(env, profile)


def retry_policy(environment: Mapping[str, str] | None = None) -> RetryPolicy:
    """Return the retry policy: ``AWS_MAX_ATTEMPTS``, or seven attempts.

    Raises:
        UsageError: ``usage.aws-config`` if that is not a number.
    """
    env = os.environ if environment is None else environment
    text = env.get("AWS_MAX_ATTEMPTS")
    if not text:
        return RetryPolicy()
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise UsageError(f"AWS_MAX_ATTEMPTS is {text[:40]!r}", code="usage.aws-config", hint="use a number from 1 on")
    return RetryPolicy(attempts=int(text))


def read_profile(env: Mapping[str, str]) -> Profile:
    """The profile that is in effect; without settings if none is named and there is no default one.

    Raises:
        UsageError: ``usage.aws-profile`` if the one that is named does not exist; ``usage.aws-config`` if a file is not
            what it should be.
    """
    home = Path(env.get("HOME") or env.get("USERPROFILE") or "~").expanduser()
    config = _sections(Path(env.get("AWS_CONFIG_FILE") or home / ".aws" / "config").expanduser())
    keys = _sections(Path(env.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws" / "credentials").expanduser())
    named = env.get("AWS_PROFILE") or env.get("AWS_DEFAULT_PROFILE")
    name = named or "default"
    # In the config file every profile but the default one is called "profile NAME".
    from_config = config.get(f"profile {name}", config.get(name) if name == "default" else None)
    if named and from_config is None and name not in keys:
        profiles = sorted({*keys, *(s.removeprefix("profile ") for s in config if s.startswith("profile "))})
        raise UnknownNameError(
            f"there is no AWS profile {name!r}",
            code="usage.aws-profile",
            nearest=tuple(difflib.get_close_matches(name, profiles) or profiles[:10]),
            hint="check AWS_PROFILE, ~/.aws/config and ~/.aws/credentials",
        )
    settings = {**(from_config or {}), **keys.get(name, {})}
    if services := settings.get("services"):
        endpoint = config.get(f"services {services}", {}).get("s3.endpoint_url")
        settings |= {"services.s3.endpoint_url": endpoint} if endpoint else {}
    return Profile(name, settings)


def _endpoint(env: Mapping[str, str], settings: Mapping[str, str], region: str | None) -> str | None:
    ignore = env.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") or settings.get("ignore_configured_endpoint_urls") or ""
    if ignore.lower() in _YES:
        return f"https://s3.{region or _REGION}.amazonaws.com"
    named = env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL") or env.get("AWS_ENDPOINT")
    found = named or settings.get("services.s3.endpoint_url") or settings.get("endpoint_url")
    if found and urlsplit(found).scheme.lower() not in ("http", "https"):
        raise UsageError(f"the S3 endpoint is {found[:80]!r}", code="usage.aws-config", hint="use http:// or https://")
    return found


def _credentials(env: Mapping[str, str], profile: Profile) -> dict[str, Any]:
    """Return the credentials for obstore; nothing where it finds them itself."""
    settings = profile.settings
    if (env.get("AWS_SKIP_SIGNATURE") or "").lower() in _YES:
        return {"skip_signature": True}
    if env.get("AWS_ACCESS_KEY_ID") and env.get("AWS_SECRET_ACCESS_KEY"):
        return {}
    if env.get("AWS_WEB_IDENTITY_TOKEN_FILE") and env.get("AWS_ROLE_ARN"):
        return {}
    if any(name in settings for name in _TALKS_TO_AWS):
        return {"credential_provider": _boto3_provider(profile.name)}
    key, secret = settings.get("aws_access_key_id"), settings.get("aws_secret_access_key")
    if key and secret:
        token = settings.get("aws_session_token")
        return {"access_key_id": key, "secret_access_key": secret} | ({"session_token": token} if token else {})
    if command := settings.get("credential_process"):
        return {"credential_provider": _process_provider(command)}
    if any(env.get(name) for name in _FROM_THE_MACHINE) or _has_metadata_service(env):
        return {}
    raise StoreError(f"cannot reach S3: {NO_CREDENTIALS.what}", code=NO_CREDENTIALS.code, hint=NO_CREDENTIALS.hint)


def _boto3_provider(profile: str) -> Callable[[], Any]:
    try:
        import boto3
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        export = f"aws configure export-credentials --profile {shlex.quote(profile)} --format env"
        raise StoreError(
            f"the AWS profile {profile!r} logs in or assumes a role, which takes boto3",
            code="store.credentials",
            hint=f'pip install boto3, or: eval "$({export})"',
        ) from None
    provider: Callable[[], Any] = Boto3CredentialProvider(boto3.Session(profile_name=profile))
    return provider


def _process_provider(command: str) -> Callable[[], dict[str, Any]]:
    """Asks a ``credential_process`` ("Process credential provider" in the same guide)."""

    def credentials_of_process() -> dict[str, Any]:
        try:
            done = subprocess.run(
                shlex.split(command), capture_output=True, text=True, timeout=_PROCESS_SECONDS, check=True
            )
            credentials = json.loads(done.stdout)
            expires = credentials.get("Expiration")
            return {
                "access_key_id": str(credentials["AccessKeyId"]),
                "secret_access_key": str(credentials["SecretAccessKey"]),
                "token": credentials.get("SessionToken"),
                "expires_at": datetime.fromisoformat(expires) if expires else None,
            }
        except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError, AttributeError) as error:
            # Its output may hold a secret: it is not shown.
            raise StoreError(
                f"the credential_process of the AWS profile gave no credentials ({type(error).__name__})",
                code="store.credentials",
                hint=f"run it by hand: {command.split()[0] if command.split() else command}",
            ) from None

    credentials_of_process()  # Told now, an error keeps its words; obstore would wrap them in its own.
    return credentials_of_process


def _has_metadata_service(env: Mapping[str, str]) -> bool:
    """True if this machine is one that is given credentials: otherwise obstore would wait for an answer for long."""
    import socket

    if (env.get("AWS_EC2_METADATA_DISABLED") or "").lower() in _YES:
        return False
    place = urlsplit(env.get("AWS_METADATA_ENDPOINT") or env.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or _METADATA)
    try:
        socket.create_connection((place.hostname or "", place.port or 80), timeout=1).close()
    except (OSError, ValueError):
        return False
    return True


def _sections(path: Path) -> dict[str, dict[str, str]]:
    """The sections of an AWS file; a file that is not there has none."""
    parser = configparser.RawConfigParser(default_section="", strict=False, inline_comment_prefixes=None)
    try:
        parser.read_string(_read(path), str(path))
    except FileNotFoundError:
        return {}
    except configparser.Error as error:
        first = str(error).split("\n", 1)[0]
        raise UsageError(f"cannot read an AWS file: {first}", code="usage.aws-config", location=str(path)) from error
    found: dict[str, dict[str, str]] = {}
    for section in parser.sections():
        settings: dict[str, str] = {}
        for name, value in parser.items(section):
            if value and value.startswith("\n"):  # nested: "s3 =" and indented lines below it
                pairs = (line.split("=", 1) for line in value.splitlines() if "=" in line)
                settings.update({f"{name}.{key.strip().lower()}": inner.strip() for key, inner in pairs})
            elif value:
                settings[name] = value.strip()
        # Quotes and spaces around a profile's name mean nothing.
        found[" ".join(section.replace('"', " ").replace("'", " ").split())] = settings
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read it: {error}", code="usage.aws-config", location=str(path)) from error
