"""The hooks of .pre-commit-hooks.yaml through pre-commit itself: installed from the repository, on a scratch clone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
POLICY = """version: 1
name: privacy
classes: {personal: {}}
classify: [{class: personal, columns: ["crm.users.email"]}]
rules:
  - {id: PII001, title: No addresses in marts, deny: {flow: {class: personal, to: {datasets: ["mart.**"]}}}}
tests:
  - name: raw
    given: {schema: {crm.users: [email]}, sql: create table mart.a as select email as x from crm.users}
    expect: [{rule: PII001, column: mart.a.x}]
"""
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not shutil.which("git") or not (ROOT / ".git").exists(), reason="needs git and a clone"),
]


def run(command, folder, **environment):
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A clone of this repository at its head, and pre-commit's home, where it is installed once."""
    folder = tmp_path_factory.mktemp("pre-commit")
    code, reported = run(["git", "clone", "-q", str(ROOT), "hooks"], folder)
    assert code == 0, reported
    return folder


@pytest.fixture
def repository(tmp_path):
    files = {
        "policies/privacy.yml": POLICY,
        "etl/a.sql": "CREATE TABLE crm.users (id int, email text);\nCREATE TABLE mart.a AS SELECT id FROM crm.users;\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for command in (["init", "-q"], ["add", "-A"]):
        assert run(["git", *command], tmp_path)[0] == 0
    return tmp_path


def hooks(installed: Path, repository: Path) -> dict[str, tuple[bool, str]]:
    """Run all hooks as a repository that names them would; whether each passed, and what it said."""
    revision = run(["git", "rev-parse", "HEAD"], installed / "hooks")[1].strip()
    wanted = {"repo": str(installed / "hooks"), "rev": revision, "hooks": [{"id": one["id"]} for one in HOOKS]}
    (repository / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [wanted]}))
    assert run(["git", "add", "-A"], repository)[0] == 0
    found = {}
    for one in HOOKS:
        code, reported = run(
            [sys.executable, "-m", "pre_commit", "run", one["id"], "--all-files", "--verbose"],
            repository,
            PRE_COMMIT_HOME=str(installed / "home"),
            GOVTOOL_CACHE=str(repository / ".git" / "cache"),
            GOVTOOL_COMPILE="0",  # a wheel of plain Python is built in seconds
        )
        assert code in (0, 1), reported
        found[one["id"]] = (code == 0 and "Passed" in reported, reported)
    return found


def test_every_hook_passes_on_what_is_in_order_and_fails_on_what_is_not(installed, repository):
    for passed, reported in hooks(installed, repository).values():
        assert passed, reported
    (repository / "etl" / "b.sql").write_text("CREATE TABLE mart.b AS SELECT email AS x FROM crm.users;\n")
    (repository / "etl" / "c.sql").write_text("SELECT FROM WHERE;\n")
    (repository / "policies" / "privacy.yml").write_text(POLICY.replace("column: mart.a.x", "column: mart.a.y"))
    wanted = {"govtool-check": "PII001 error", "govtool-policy-test": "mart.a.y", "govtool-lineage": "parse-error"}
    for name, (passed, reported) in hooks(installed, repository).items():
        assert not passed
        assert wanted[name] in reported
