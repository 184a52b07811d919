"""The usual AWS environment, and what a user is told when something is wrong with it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import pytest

from bench import servers
from bench.proxy import Fault
from bench.proxy import at as at_request
from govtool.errors import EXIT_STORE, EXIT_USAGE, StoreError, UnknownNameError, UsageError
from govtool.store import Store
from govtool.store.backends import aws
from govtool.store.backends.location import normalise

KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}


@pytest.fixture
def home(tmp_path):
    """``home(config=…, credentials=…)``: an environment with these files and no machine credentials."""

    def make(config="", credentials="", **variables):
        folder = tmp_path / ".aws"
        folder.mkdir(exist_ok=True)
        (folder / "config").write_text(config)
        (folder / "credentials").write_text(credentials)
        return {"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true", **variables}

    return make


def test_keys_of_the_environment_are_left_to_obstore(home):
    options = aws.s3_options(home(**KEYS))
    assert options == {"client_options": {}}


def test_the_environment_goes_before_the_profile(home):
    config = "[default]\nregion = eu-west-1\nendpoint_url = http://config:1\n"
    credentials = "[default]\naws_access_key_id = file\naws_secret_access_key = file\n"
    options = aws.s3_options(
        home(config, credentials, AWS_REGION="us-west-2", AWS_ENDPOINT_URL_S3="https://env:2", **KEYS)
    )
    assert (options["region"], options["endpoint"]) == ("us-west-2", "https://env:2")
    assert "access_key_id" not in options
    assert options["client_options"] == {"allow_http": False}


def test_the_default_profile(home):
    config = "[default]\nregion = eu-west-1\nendpoint_url = http://config:1\ns3 =\n  addressing_style = path\n"
    credentials = "[default]\naws_access_key_id = AK\naws_secret_access_key = with = signs\naws_session_token = T\n"
    options = aws.s3_options(home(config, credentials))
    assert options["region"] == "eu-west-1"
    assert options["endpoint"] == "http://config:1"
    assert options["client_options"] == {"allow_http": True}
    assert (options["access_key_id"], options["secret_access_key"]) == ("AK", "with = signs")
    assert options["session_token"] == "T"


def test_a_named_profile_with_an_endpoint_of_its_own_for_s3(home):
    config = """
[default]
region = eu-west-1
[profile "minio"]
region = us-east-2
services = local
aws_access_key_id = A
aws_secret_access_key = B
[services local]
s3 =
  endpoint_url = http://minio:9000
dynamodb =
  endpoint_url = http://other:1
"""
    options = aws.s3_options(home(config, AWS_PROFILE="minio"))
    assert (options["region"], options["endpoint"], options["access_key_id"]) == ("us-east-2", "http://minio:9000", "A")
    options = aws.s3_options(home(config, AWS_PROFILE="minio", AWS_IGNORE_CONFIGURED_ENDPOINT_URLS="true"))
    assert options["endpoint"] == "https://s3.us-east-2.amazonaws.com"


def test_an_unknown_profile(home):
    with pytest.raises(UnknownNameError) as caught:
        aws.s3_options(home("[profile prod]\nregion = x\n", AWS_PROFILE="prd"))
    assert caught.value.code == "usage.aws-profile"
    assert caught.value.nearest == ("prod",)
    assert caught.value.exit_code == EXIT_USAGE


def test_no_credentials_anywhere(home):
    with pytest.raises(StoreError) as caught:
        aws.s3_options(home())
    assert caught.value.code == "store.credentials"
    assert "AWS_PROFILE" in caught.value.hint


def test_a_public_bucket_needs_none(home):
    assert aws.s3_options(home(AWS_SKIP_SIGNATURE="true"))["skip_signature"] is True


def test_a_credential_process(home, tmp_path):
    stated = '{"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "B", "Expiration": "2030-01-01T00:00:00Z"}'
    script = tmp_path / "with space.py"
    script.write_text(f"print({stated!r})")
    config = f'[profile p]\ncredential_process = "{sys.executable}" "{script}"\n'
    found = aws.s3_options(home(config, AWS_PROFILE="p"))["credential_provider"]()
    assert found == {
        "access_key_id": "A",
        "secret_access_key": "B",
        "token": None,
        "expires_at": datetime(2030, 1, 1, tzinfo=UTC),
    }


@pytest.mark.parametrize("command", ["/nowhere/program", "false", "echo secret", "echo []", "'", 'echo {"Version":1}'])
def test_a_credential_process_that_fails(home, command):
    with pytest.raises(StoreError) as caught:
        aws.s3_options(home(f"[profile p]\ncredential_process = {command}\n", AWS_PROFILE="p"))
    assert caught.value.code == "store.credentials"
    assert "secret" not in caught.value.message


def test_what_takes_boto3_says_so(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(StoreError) as caught:
        aws.s3_options(home("[profile p]\nsso_session = corp\n", AWS_PROFILE="p"))
    assert caught.value.code == "store.credentials"
    assert "boto3" in caught.value.hint


@pytest.mark.parametrize(
    ("config", "variables"),
    [
        ("no section\n", {}),
        ("[default]\nendpoint_url = ftp://x\n", {}),
        ("", {"AWS_ENDPOINT_URL": "localhost:9000"}),
        ("", {"AWS_CONFIG_FILE": "/"}),
    ],
)
def test_settings_that_make_no_sense(home, config, variables):
    with pytest.raises(UsageError) as caught:
        aws.s3_options(home(config, **{**KEYS, **variables}))
    assert caught.value.code == "usage.aws-config"


@pytest.mark.parametrize("text", ["many", "0", "-1", "1e3"])
def test_a_number_of_attempts_that_makes_no_sense(text):
    with pytest.raises(UsageError) as caught:
        aws.retry_policy({"AWS_MAX_ATTEMPTS": text})
    assert caught.value.code == "usage.aws-config"


# Against servers


def test_a_profile_opens_a_store_on_a_server_that_checks_signatures(start_server, use_server, home, monkeypatch):
    address = use_server("seaweedfs")
    for name in servers.environment(""):
        monkeypatch.delenv(name)
    config = f"[profile weed]\nendpoint_url = {start_server('seaweedfs').url}\nregion = us-east-1\n"
    credentials = f"[weed]\naws_access_key_id = {servers.KEY}\naws_secret_access_key = {{}}\n"
    for name, value in home(config, credentials.format(servers.SECRET), AWS_PROFILE="weed").items():
        monkeypatch.setenv(name, value)
    assert Store.init(address).head() is None
    home(config, credentials.format("wrong"))
    with pytest.raises(StoreError) as caught:
        Store.open(address)
    assert caught.value.code == "store.credentials"


@pytest.mark.parametrize("server", ["moto", "seaweedfs"])
def test_a_bucket_that_does_not_exist(use_server, server):
    use_server(server)
    for attempt in (Store.open, Store.init):
        with pytest.raises(StoreError) as caught:
            attempt("s3://no-such-bucket/x")
        assert caught.value.code == "store.missing-bucket"
        assert caught.value.location == "s3://no-such-bucket/x"


def test_nobody_listens(use_server, monkeypatch):
    address = use_server("moto", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    with pytest.raises(StoreError) as caught:
        Store.open(address)
    assert caught.value.code == "store.unreachable"
    assert "\n" not in caught.value.message


REFUSALS = [
    (403, "AccessDenied", "", "store.denied", "s3:PutObject"),
    (403, "InvalidAccessKeyId", "", "store.credentials", "AWS_ACCESS_KEY_ID"),
    (403, "SignatureDoesNotMatch", "", "store.credentials", "AWS_SECRET_ACCESS_KEY"),
    (400, "ExpiredToken", "", "store.credentials", "renew"),
    (403, "RequestTimeTooSkewed", "", "store.clock", "clock"),
    (301, "PermanentRedirect", "<Endpoint>b.s3.eu-west-1.amazonaws.com</Endpoint>", "store.region", "AWS_REGION"),
    (400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>", "store.region", "AWS_REGION=eu-west-1"),
    (404, "NoSuchBucket", "", "store.missing-bucket", "bucket"),
    (503, "SlowDown", "", "store.unreachable", "wait"),
    (500, "InternalError", "", "store.unreachable", "wait"),
    (502, "", "", "store.unreachable", "wait"),
    (429, "TooManyRequests", "", "store.unreachable", "wait"),
]


@pytest.mark.parametrize(("status", "error", "detail", "code", "hint"), REFUSALS)
def test_a_refusal_says_what_is_wrong_and_loses_nothing(proxy, through, say, texts, status, error, detail, code, hint):
    """From the k-th request of a commit on, as when credentials expire or the bucket vanishes in the middle of it."""
    store = Store.init(through)
    say("etl", b"old", into=store)
    fault = Fault("status", status=status, error=error, detail=detail)
    k = 0
    while True:
        k += 1
        proxy.reset(lambda request, k=k: fault if request.number >= k else None)
        try:
            say("etl", b"new", batch="b", into=store)
        except StoreError as refused:
            assert refused.code == code, refused.message  # noqa: PT017
            assert hint in refused.hint or "cannot be known" in refused.message  # noqa: PT017
            assert refused.exit_code == EXIT_STORE  # noqa: PT017
            assert "\n" not in refused.message  # noqa: PT017
        else:
            break
        proxy.reset()
        assert texts(store) == {"etl": {b"old"}}
    assert k == 7  # A hint that cannot be moved costs nothing.
    proxy.reset()
    assert texts(store) == {"etl": {b"new"}}
    assert not say("etl", b"new", batch="b", into=store).created


def test_a_refused_deletion_names_its_permission(proxy, through, say):
    store = Store.init(through)
    say("etl", b"a", into=store)
    proxy.reset(lambda request: Fault("status", status=403, error="AccessDenied") if "delete" in request.path else None)
    with pytest.raises(StoreError, match="cannot delete") as refused:
        store.objects.delete("frag/x")
    assert (refused.value.code, "s3:DeleteObject" in refused.value.hint) == ("store.denied", True)


def test_a_busy_server_is_asked_again(proxy, through, say, monkeypatch):
    store = Store.init(through)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "4")
    patient = Store.open(through)
    proxy.reset(lambda request: Fault("status", status=503, error="SlowDown") if request.number % 2 else None)
    assert say("etl", b"a", into=patient).created
    assert proxy.hits >= 5
    proxy.reset()
    assert store.head().seq == 1


def test_a_server_that_ignores_conditions_is_refused(proxy, through):
    proxy.reset(lambda request: Fault("strip"))
    with pytest.raises(StoreError) as caught:
        Store.init(through)
    assert caught.value.code == "store.no-conditional-put"
    assert "If-None-Match" in caught.value.hint


def test_a_server_that_does_not_know_conditions_is_refused(proxy, through):
    unknown = Fault("status", status=501, error="NotImplemented")
    proxy.reset(lambda request: unknown if request.method == "PUT" else None)
    with pytest.raises(StoreError) as caught:
        Store.init(through)
    assert caught.value.code == "store.no-conditional-put"


def test_a_conflict_that_nobody_won_is_tried_again(proxy, through, say):
    """S3 answers 409 when two conditional writes meet, and then perhaps neither is applied."""
    store = Store.init(through)
    say("etl", b"a", into=store)
    for k in range(1, 7):
        proxy.reset(at_request(k, Fault("status", status=409, error="ConditionalRequestConflict")))
        try:
            say("etl", b"b%d" % k, batch=f"b{k}", into=store)
        except StoreError as error:
            assert error.code == "store.unreachable"  # noqa: PT017
            proxy.reset()
            say("etl", b"b%d" % k, batch=f"b{k}", into=store)
        assert proxy.hits <= 1
    proxy.reset()
    assert [commit.batch for commit in store.log()][:-1] == [f"b{k}" for k in range(6, 0, -1)]


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        ("s3://store/per%cent", "write %25"),
        ("s3://store/100%ff", "write %25"),
        ("az://store/%c3x", "write %25"),
        ("s3://store/a//b", "s3://bucket/prefix"),
        ("s3://store//a", "s3://bucket/prefix"),
        ("s3://store/a%2f%2Fb", "s3://bucket/prefix"),
        ("s3://store/a#b", "write %23"),
        ("s3://store/a?b", "write %3F"),
        ("s3://store?", "write %3F"),
        ("file:///store/a?b", "write %3F"),
    ],
)
def test_an_address_is_a_url(address, hint):
    with pytest.raises(UsageError, match="is not the address of a store") as refused:
        Store.open(address)
    assert hint in refused.value.hint
    for sound in ("s3://store/100%25/a%20b", "s3://store", "s3://store/ünï čödé"):
        assert normalise(f"{sound}/") == sound
