"""action.yml: held to GitHub's schema, and its steps run by bash with what GitHub sets, on a repository with a change."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
SARIF = json.loads((ROOT / "tests" / "render" / "data" / "sarif-2.1.0.json").read_text())
pytestmark = pytest.mark.skipif(os.name == "nt" or not shutil.which("git"), reason="needs bash and git")

POLICY = """version: 1
name: privacy
classes: {personal: {}}
classify: [{class: personal, columns: ["crm.users.email"]}]
zones: {marketing: {datasets: ["mart.**"]}}
rules:
  - {id: PII001, title: No addresses in marts, deny: {flow: {class: personal, to: {zone: marketing}}}}
"""
BEFORE = "CREATE TABLE crm.users (id int, email text);\nCREATE VIEW mart.known AS SELECT email AS k FROM crm.users;\n"
AFTER = "CREATE TABLE mart.fresh AS\nSELECT lower(email) AS f FROM crm.users;\n"
GH = """#!/usr/bin/env bash
printf '%s\\n' "$*" >>"$CALLS"
case "$*" in *--paginate*) if [[ -n "${KNOWN:-}" ]]; then echo "$KNOWN"; fi;; esac
"""


def run(command, folder, **environment):
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def git(folder, *arguments):
    code, out, err = run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments], folder)
    assert code == 0, err
    return out.strip()


class Runner:
    """As much of GitHub's runner as the action needs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 12
        self.repository = folder / "repository"
        self.repository.mkdir()
        self.temp = folder / "temp"
        self.temp.mkdir()
        self.tools = folder / "bin"
        self.tools.mkdir()
        (self.tools / "govtool").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m govtool "$@"\n')
        (self.tools / "gh").write_text(GH)
        for tool in self.tools.iterdir():
            tool.chmod(0o755)
        git(self.repository, "init", "-q", "-b", "main")
        self.write("policies/privacy.yml", POLICY)
        self.write("etl/before.sql", BEFORE)
        self.base = self.commit("base")

    def write(self, name: str, text: str) -> None:
        path = self.repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, message: str) -> str:
        git(self.repository, "add", "-A")
        git(self.repository, "commit", "-q", "-m", message)
        return git(self.repository, "rev-parse", "HEAD")

    def value(self, text: str, inputs: dict[str, str], outputs: dict[str, dict[str, str]]) -> str:
        """An expression ``${{ … }}`` of those that the action has."""

        def one(found: re.Match[str]) -> str:
            for option in found[1].split("||"):
                name = option.strip()
                given = {
                    "github.action_path": str(ROOT),
                    "github.event.pull_request.base.sha": self.base,
                    "github.event.pull_request.number": str(self.number),
                    "github.token": "token",
                }.get(name)
                if name.startswith("inputs."):
                    given = inputs[name.removeprefix("inputs.")]
                if name.startswith("steps."):
                    _, step, _, key = name.split(".")
                    given = outputs[step].get(key, "")
                if given is None:
                    raise KeyError(name)
                if given:
                    return given
            return ""

        return re.sub(r"\$\{\{\s*(.*?)\s*\}\}", one, text)

    def __call__(self, **given: str) -> tuple[int, dict[str, str], str]:
        """Run the action; its exit code, the outputs of its check, and what it printed."""
        defaults = {name: item.get("default", "") for name, item in ACTION["inputs"].items()}
        inputs = {name: self.value(text, {}, {}) for name, text in {**defaults, **given}.items()}
        outputs: dict[str, dict[str, str]] = {}
        reported, code = "", 0
        for step in ACTION["runs"]["steps"]:
            if "uses" in step or not self.wanted(step.get("if", "true"), inputs, outputs):
                continue
            file = self.temp / "output"
            file.write_text("")
            environment = {name: self.value(text, inputs, outputs) for name, text in step.get("env", {}).items()}
            code, out, err = run(
                ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
                self.repository,
                PATH=f"{self.tools}:{os.environ['PATH']}",
                PYTHONPATH=str(ROOT),
                GOVTOOL_CACHE=str(self.folder / "cache"),
                RUNNER_TEMP=str(self.temp),
                GITHUB_ACTIONS="true",
                GITHUB_ACTION_PATH=str(ROOT),
                GITHUB_REPOSITORY="acme/warehouse",
                GITHUB_ACTOR="ada",
                GITHUB_OUTPUT=str(file),
                GITHUB_STEP_SUMMARY=str(self.temp / "summary"),
                CALLS=str(self.temp / "calls"),
                **environment,
            )
            reported += out + err
            outputs[step.get("id", step["name"])] = dict(line.split("=", 1) for line in file.read_text().splitlines())
            if code:
                break
        return code, outputs.get("check", {}), reported

    def wanted(self, condition: str, inputs: dict[str, str], outputs: dict[str, dict[str, str]]) -> bool:
        """Comparisons joined by ``&&``."""
        for part in condition.split("&&"):
            if part.strip() == "true":
                continue
            left, operator, right = part.split()
            same = self.value(f"${{{{ {left} }}}}", inputs, outputs) == right.strip("'")
            if same != (operator == "=="):
                return False
        return True

    def calls(self) -> list[str]:
        """What ``gh`` was called with, the text of comments left out."""
        file = self.temp / "calls"
        return [line for line in file.read_text().splitlines() if line.startswith("api")] if file.exists() else []


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)


def test_it_is_an_action_as_github_has_them():
    code, out, err = run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml"], ROOT
    )
    assert code == 0, out + err


def test_the_documented_workflows_are_workflows_and_name_inputs_that_there_are(tmp_path):
    blocks = re.findall(r"```yaml\n(# \.github/workflows/.*?)```", (ROOT / "docs" / "ci.md").read_text(), re.DOTALL)
    assert len(blocks) >= 2
    for number, text in enumerate(blocks):
        file = tmp_path / f"{number}.yml"
        file.write_text(text)
        code, out, err = run(
            [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(file)], ROOT
        )
        assert code == 0, out + err
        for job in yaml.safe_load(text)["jobs"].values():
            for step in job["steps"]:
                if "govtool" in step.get("uses", ""):
                    assert set(step.get("with", {})) <= set(ACTION["inputs"])


def test_the_release_workflow_is_one_and_runs_scripts_that_there_are():
    file = ROOT / ".github" / "workflows" / "release.yml"
    code, out, err = run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(file)], ROOT
    )
    assert code == 0, out + err
    jobs = yaml.safe_load(file.read_text())["jobs"].values()
    commands = [step["run"].split()[0] for job in jobs for step in job["steps"] if "run" in step]
    assert commands == ["scripts/release", "scripts/wheels"]
    assert all(os.access(ROOT / command, os.X_OK) for command in commands)


def test_a_pull_request_is_judged_by_what_it_brings(runner):
    runner.write("etl/after.sql", AFTER)
    runner.commit("change")
    code, outputs, reported = runner(paths="etl", dialect="postgres", root="etl", install="none", today="2026-11-21")
    assert (code, outputs["exit-code"]) == (1, "1"), reported
    findings = json.loads(Path(outputs["json"]).read_text())["findings"]
    assert [f["column"] for f in findings] == ["mart.fresh.f"]
    assert "::error file=etl/after.sql,line=2" in reported
    assert "mart.fresh.f" in (runner.temp / "summary").read_text()
    report = json.loads(Path(outputs["sarif"]).read_text())
    assert list(Draft7Validator(SARIF).iter_errors(report)) == []
    place = report["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert place == "etl/after.sql"
    assert next(c.split()[1:3] for c in runner.calls()) == ["--paginate", "repos/acme/warehouse/issues/12/comments"]
    assert any("--method POST" in c for c in runner.calls())
    assert git(runner.repository, "status", "--porcelain") == ""


@pytest.mark.long
def test_a_comment_that_is_there_is_changed(runner, monkeypatch):
    monkeypatch.setenv("KNOWN", "77")
    code, _, reported = runner(paths="etl", dialect="postgres", install="none")
    assert code == 0, reported
    assert any("--method PATCH repos/acme/warehouse/issues/comments/77" in c for c in runner.calls())
    assert not any("--method POST" in c for c in runner.calls())


@pytest.mark.long
def test_a_store_gets_a_branch_for_the_pull_request_and_again_at_the_next_push(runner):
    store = str(runner.folder / "graph")
    for command in (["init"], ["ingest", "sql", "etl", "--dialect", "postgres", "--source", "warehouse"]):
        code, _, err = run(
            [str(runner.tools / "govtool"), *command, "--store", store], runner.repository, PYTHONPATH=str(ROOT)
        )
        assert code == 0, err
    runner.write("etl/after.sql", AFTER)
    runner.commit("change")
    given = {"paths": "etl", "dialect": "postgres", "install": "none", "store": store, "source": "warehouse"}
    for _ in range(2):
        code, outputs, reported = runner(**given, comment="false", branch="pr-12")
        assert code == 1, reported
        assert [f["column"] for f in json.loads(Path(outputs["json"]).read_text())["findings"]] == ["mart.fresh.f"]
    assert runner.calls() == []
    runner.write("etl/after.sql", "SELECT 1;\n")
    code, _, reported = runner(**given, comment="false", branch="pr-12")
    assert code == 0, reported


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"min-coverage": "100"}, 3),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in [
                ({"policy": "missing.yml"}, 2),
                ({"fail-on": "none"}, 0),
                ({"dialect": "klingon"}, 2),
                ({"paths": "etl\n  docs of nothing\n"}, 2),
                ({"policy": "policies/privacy.yml\npack:pci", "fail-on": "error"}, 1),
            ]
        ),
    ],
)
def test_the_exit_code_is_that_of_the_check(runner, given, code):
    runner.write("etl/after.sql", AFTER + "SELECT FROM WHERE;\n")
    runner.commit("change")
    found, outputs, reported = runner(
        **{"paths": "etl", "dialect": "postgres", "install": "none", "comment": "false", **given}
    )
    assert (found, outputs["exit-code"]) == (code, str(code)), reported


UNREADABLE = "CREATE TABEL mart.fresh ASS SELECTT ((email FROM crm.users;\n"


@pytest.mark.long
def test_a_pull_request_of_which_nothing_is_understood_is_not_passed(runner):
    (runner.repository / "etl/before.sql").write_text(UNREADABLE)
    runner.commit("change")
    code, outputs, reported = runner(paths="etl", dialect="postgres", install="none")
    assert (code, outputs["exit-code"]) == (3, "3"), reported
    assert "### govtool check: not judged" in Path(outputs["markdown"]).read_text()
    assert any("--method POST" in call for call in runner.calls())


def test_a_pull_request_below_the_coverage_of_the_ingest_is_not_passed(runner):
    runner.write("etl/after.sql", UNREADABLE)
    runner.commit("change")
    given = {"paths": "etl", "dialect": "postgres", "install": "none", "comment": "false"}
    code, outputs, reported = runner(**given, **{"ingest-args": "--min-coverage\n90"})
    assert (code, outputs["exit-code"]) == (3, "3"), reported


@pytest.mark.long
def test_a_pull_request_onto_what_nobody_understands_is_judged_as_a_whole(runner):
    runner.write("etl/before.sql", UNREADABLE)
    runner.base = runner.commit("base")
    runner.write("etl/before.sql", BEFORE)
    runner.commit("change")
    code, outputs, reported = runner(paths="etl", dialect="postgres", install="none", comment="false")
    assert (code, outputs["exit-code"]) == (1, "1"), reported
    assert [f["column"] for f in json.loads(Path(outputs["json"]).read_text())["findings"]] == ["mart.known.k"]


def test_inputs_are_data_and_no_commands(runner):
    bad = "$(touch owned); `touch owned`"
    code, _, _ = runner(paths=bad, dialect="postgres", install="none", comment="false")
    assert code == 2
    assert not list(runner.folder.rglob("owned"))
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
