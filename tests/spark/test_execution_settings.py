"""Settings of an execution are those with which it began, whatever is set, or set back, since."""

from __future__ import annotations

from types import SimpleNamespace

from govtool.spark.live.job.settings import EFFECTIVE, ApplicationSettings, modified_settings


class Defaults:
    def getConfString(self, key):
        return {"spark.sql.ansi.enabled": "true", "spark.sql.caseSensitive": "false"}[key]


def application(*set_in_context):
    jvm = SimpleNamespace(
        org=SimpleNamespace(
            apache=SimpleNamespace(
                spark=SimpleNamespace(sql=SimpleNamespace(internal=SimpleNamespace(SQLConf=Defaults)))
            )
        )
    )
    return ApplicationSettings(
        SimpleNamespace(getConf=lambda: SimpleNamespace(getAll=lambda: set_in_context), _jvm=jvm)
    )


def test_a_session_stands_above_the_application_and_this_above_the_defaults():
    settings = application(("spark.sql.ansi.enabled", "false"))
    assert settings.values(EFFECTIVE) == {"spark.sql.ansi.enabled": "false", "spark.sql.caseSensitive": "false"}
    modified = modified_settings("spark.sql.caseSensitive -> true")
    assert settings.values(["spark.sql.caseSensitive"], modified) == {"spark.sql.caseSensitive": "true"}


def test_what_is_known_but_was_not_set_had_its_default():
    """The session was described late: it had set ANSI mode by then, which the execution did not have yet."""
    known = {"spark.sql.ansi.enabled": "false", "spark.sql.caseSensitive": "false"}
    assert application().changed({}, known) == {"spark.sql.ansi.enabled": "true"}
    assert application().changed({"spark.sql.ansi.enabled": "false"}, known) == {}


def test_secrets_and_what_spark_redacts_are_left_out():
    text = "spark.sql.x.password -> a\x01spark.sql.url -> *********(redacted)\x01spark.sql.y -> a -> b\x01spark.z -> 1"
    assert application().changed(modified_settings(text), {}) == {"spark.sql.y": "a -> b"}
