"""``check`` and ``policy`` from the command line: outcomes, outputs, mistakes in policies."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jsonschema
import pytest

from govtool.app.project.checkout import checkout
from govtool.errors import UsageError

ROOT = Path(__file__).parents[2]
SARIF = json.loads((ROOT / "tests" / "render" / "data" / "sarif-2.1.0.json").read_text())
CHECK = json.loads((ROOT / "docs" / "schemas" / "check-1.json").read_text())
POLICY = """version: 1
name: privacy
classes: {personal: {}, personal.contact: {}}
classify:
  - {class: personal.contact, columns: ["**.email"], except: ["mart.*.email"]}
declassify:
  - {name: keyed, kind: mask, functions: ["@keyed"], from: [personal], to: personal}
zones:
  mart: {datasets: ["mart.**"]}
rules:
  - id: PII1
    title: No contact data in marts
    deny: {flow: {class: personal.contact, to: {zone: mart}}}
    unless: [{declassified: [keyed]}]
  - id: OWN1
    title: An owner
    severity: warning
    require: {metadata: {class: personal, keys: [owner]}}
"""
SQL = {
    "stg.sql": "create table crm.users (id int, email text);\n\ncreate view stg.users as\n"
    "select id, lower(email) as address from crm.users;\n",
    "mart.sql": "create table mart.audience as\nselect address as who from stg.users;\n"
    "create table mart.hashed as select hmac(address, 'k', 'sha256') as who from stg.users;\n",
}


@pytest.fixture
def warehouse(govtool, project):
    """The command line in a project with two files and a policy."""
    (project / "etl").mkdir()
    (project / "policies").mkdir()
    for name, text in SQL.items():
        (project / "etl" / name).write_text(text)
    (project / "policies" / "privacy.yml").write_text(POLICY)
    assert govtool("init").code == 0
    assert govtool("ingest", "sql", "etl", "--dialect", "postgres").code == 0
    return govtool


def test_a_violation_is_told_with_its_way_and_exits_1(warehouse):
    done = warehouse("check")
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[:3] == [
        "PII1 error  No contact data in marts  policies/privacy.yml:11",
        "  crm.users.email ──lower()──▶ stg.users.address ──copy──▶ mart.audience.who  [mart.sql:2:8]",
        "    lower() keeps the value · fix: keyed (@keyed)",
    ]
    assert lines[-1].startswith("1 error, 4 warnings, 0 rules held · coverage 100.0%")


def test_a_rule_with_many_findings_does_not_push_out_the_others(warehouse):
    shown = warehouse("check", "--limit", "2").out
    assert re.findall(r"^\w+ \w+|^  … .*", shown, re.M)[:3] == ["PII1 error", "OWN1 warning", "  … 3 more"]
    assert " · 3 more (--all) · " in shown
    markdown = warehouse("check", "--limit", "2", "-f", "markdown").out
    assert [row.split(" | ")[1][:4] for row in markdown.splitlines() if row.startswith(("| error", "| warning"))] == [
        "PII1",
        "OWN1",
    ]
    assert "3 more findings not shown." in markdown


def test_findings_of_one_rule_have_one_heading_and_one_reason(warehouse):
    shown = warehouse("check", "--policy", "pack:starter").out
    found = json.loads(warehouse("check", "--policy", "pack:starter", "-f", "json").out)["findings"]
    owners = [one["column"] for one in found if one["rule"] == "START005"]
    assert len(owners) > 1
    block = next(block for block in shown.split("\n\n") if block.startswith("START005"))
    assert block.count("START005") == shown.count("START005") == 1
    assert block.splitlines()[1:-1] == [f"  {name}" for name in owners]
    assert block.splitlines()[-1].startswith("    no owner · fix: ")


def test_headings_have_the_colour_of_their_level(warehouse):
    shown = warehouse("check", "--color", "always").out
    assert "\x1b[1;31mPII1 error" in shown
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == warehouse("check").out


def test_fail_on(warehouse):
    assert warehouse("check", "--fail-on", "none").code == 0
    wrong = warehouse("check", "--fail-on", "eror")
    assert wrong.code == 2
    assert "did you mean  error" in wrong.err


def test_several_outputs_in_one_run(warehouse, project):
    arguments = []
    for form, file in (("sarif", "a.sarif"), ("json", "a.json"), ("junit", "a.xml"), ("markdown", "a.md")):
        arguments += ["-f", form, "-o", file]
    done = warehouse("check", *arguments)
    assert (done.code, done.out) == (1, "")
    log = json.loads((project / "a.sarif").read_text())
    jsonschema.Draft4Validator(SARIF).validate(log)
    (result,) = [r for r in log["runs"][0]["results"] if r["ruleId"] == "PII1"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "etl/mart.sql", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 2, "startColumn": 8, "endLine": 2, "endColumn": 22}
    assert log["runs"][0]["originalUriBaseIds"] == {"%SRCROOT%": {"uri": f"{project.as_uri()}/"}}
    assert [h["physicalLocation"]["region"]["startLine"] for h in result["relatedLocations"]] == [4]
    answer = json.loads((project / "a.json").read_text())
    jsonschema.validate(answer, CHECK)
    assert answer["findings"][0]["fingerprint"] == result["partialFingerprints"]["govtoolFinding/v1"]
    suite = ElementTree.parse(project / "a.xml").getroot()
    assert {c.get("name"): bool(c.findall("failure")) for c in suite.iter("testcase")} == {
        "PII1 No contact data in marts": True,
        "OWN1 An owner": True,
    }
    assert (project / "a.md").read_text().startswith("<!-- govtool check -->\n### govtool check: 1 error")


def test_github_annotates_lines_and_a_sarif_file_is_written_beside_it(warehouse, project, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project / "summary.md"))
    done = warehouse("check", "--format", "github", "-o", "check.sarif", "--root", "etl")
    assert (
        "::error file=etl/mart.sql,line=2,endLine=2,col=8,endColumn=21,title=PII1 No contact data in marts::crm.users.email"
        in done.out
    )
    assert json.loads((project / "check.sarif").read_text())["version"] == "2.1.0"
    assert "PII1" in (project / "summary.md").read_text()


@pytest.mark.parametrize("below", ["", "warehouse/daily"])
def test_annotations_name_files_by_their_path_in_the_repository(warehouse, project, monkeypatch, below):
    """Evidence is relative to etl, policies to the working directory; GitHub wants both relative to the repository."""
    for name in ("top", "top/.git", "top/elsewhere"):
        (project / name).mkdir()
    here = project / "top" / below
    here.mkdir(parents=True, exist_ok=True)
    for name in ("etl", "policies"):
        (project / name).rename(here / name)
    (project / "top" / "elsewhere" / "mart.sql").write_text("select 1;\n")  # has not the other files
    monkeypatch.chdir(here)
    before = f"{below}/" if below else ""
    done = warehouse("check", "--store", str(project / ".govtool"), "--format", "github", "-o", "check.sarif")
    assert (
        f"::error file={before}etl/mart.sql,line=2,endLine=2,col=8,endColumn=21,title=PII1 No contact data in marts"
        in done.out
    )
    assert f"file={before}policies/privacy.yml,line=" in done.out
    (run,) = json.loads((here / "check.sarif").read_text())["runs"]
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{(project / 'top').as_uri()}/"
    uris = {
        location["physicalLocation"]["artifactLocation"]["uri"]
        for result in run["results"]
        for location in (*result["locations"], *result.get("relatedLocations", ()))
    }
    assert uris >= {f"{before}etl/mart.sql", f"{before}policies/privacy.yml"}
    assert all((project / "top" / uri).is_file() for uri in uris)


def test_every_result_has_a_place_in_the_repository(warehouse):
    """GitHub refuses a log with a result that has none."""
    (run,) = json.loads(warehouse("check", "--policy", "pack:starter", "-f", "sarif").out)["runs"]
    places = {r["ruleId"]: r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in run["results"]}
    assert places["START005"] == "policies/starter.yml"
    assert all("physicalLocation" in location for r in run["results"] for location in r["locations"])


def test_a_file_of_which_there_are_two_keeps_the_path_of_its_evidence(tmp_path):
    for name in ("a/x.sql", "b/x.sql", "b/y.sql", "c/z.sql", "d/z.sql", "f/a::b.sql"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    names = {"x.sql", "y.sql", "z.sql", "gone.sql", "a::b.sql", "gone::a.sql"}
    found = checkout(names, at=tmp_path)
    assert {f: found.evidence(f, "") for f in names} == {
        "x.sql": "b/x.sql", "y.sql": "b/y.sql", "z.sql": "z.sql", "gone.sql": "gone.sql",
        "a::b.sql": "f/a::b.sql", "gone::a.sql": "gone::a.sql",
    }  # fmt: skip
    with pytest.raises(UsageError):
        found.evidence("s3://bucket/a.sql", "")


def test_a_path_outside_the_repository_is_refused(warehouse):
    done = warehouse("check", "-f", "sarif", "--root", "../elsewhere")
    assert done.code == 2
    assert "lies outside the repository" in done.err
    assert "mart.sql:1" in done.err


def test_base_shows_only_what_the_change_brings(warehouse, project):
    assert warehouse("check", "--base", "HEAD").code == 0
    (project / "etl" / "new.sql").write_text("create table mart.more as select address as whom from stg.users;\n")
    assert warehouse("ingest", "sql", "etl", "--dialect", "postgres").code == 0
    done = warehouse("check", "--base", "HEAD~1", "-f", "json")
    answer = json.loads(done.out)
    assert done.code == 1
    assert [f["column"] for f in answer["findings"] if f["rule"] == "PII1"] == ["mart.more.whom"]
    assert answer["summary"]["known"] == 5


def test_a_baseline_accepts_what_is_there_and_survives_reformatting(warehouse, project):
    written = warehouse("check", "--update-baseline", "base.json")
    number = len(json.loads((project / "base.json").read_text())["findings"])
    assert f"wrote base.json: {number} findings accepted" in written.err.splitlines()
    assert "1 error, 4 warnings" in written.out  # what is accepted is shown
    assert written.code == 0
    assert warehouse("check", "--update-baseline", "base.json", "-q").err == ""
    assert warehouse("check", "--baseline", "base.json").code == 0
    reformatted = "\n\n-- moved\nCREATE TABLE mart.audience\nAS SELECT u.address AS who\nFROM stg.users AS u;\n"
    (project / "etl" / "mart.sql").write_text(reformatted)
    warehouse("ingest", "sql", "etl", "--dialect", "postgres")
    done = warehouse("check", "--baseline", "base.json")
    assert done.code == 0
    assert "in the baseline" in done.out
    (project / "etl" / "mart.sql").write_text(reformatted.replace("audience", "other"))
    warehouse("ingest", "sql", "etl", "--dialect", "postgres")
    assert warehouse("check", "--baseline", "base.json").code == 1
    (project / "bad.json").write_text("{}")
    assert warehouse("check", "--baseline", "bad.json").code == 2


def test_what_could_not_be_told_counts_with_strict(warehouse, project):
    text = (
        POLICY + "  - {id: R, title: region, deny: {flow: {class: personal, from: {region: eu}, to: {region: us}}}}\n"
    )
    (project / "policies" / "privacy.yml").write_text(text.replace("id: PII1", "id: PII1\n    severity: note"))
    assert warehouse("check").code == 0
    assert " unknown" in warehouse("check").out
    assert warehouse("check", "--strict").code == 1


def test_waivers_end_by_the_given_day(warehouse, project):
    waiver = "waivers: [{rule: PII1, columns: [mart.audience.who], reason: r, approved_by: dpo, expires: 2027-03-31}]\n"
    (project / "policies" / "privacy.yml").write_text(POLICY + waiver)
    done = warehouse("check", "--today", "2027-03-31")
    assert done.code == 0
    assert "1 waived (expires 2027-03-31)" in done.out
    assert "expires on 2027-03-31, in 0 days" in done.out
    assert warehouse("check", "--today", "2027-04-01").code == 1
    assert warehouse("check", "--today", "2027-02-30").code == 2


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "near"),
    [
        ("severity: warning", "severty: warning", "policy.key", 17, "severity"),
        ("class: personal.contact, to", "class: personal.contct, to", "policy.unknown-class", 13, "personal.contact"),
        ("to: {zone: mart}}}", "to: {zone: marts}}}", "policy.unknown-zone", 13, "mart"),
        ("declassified: [keyed]", "declassified: [keyd]", "policy.unknown-declassifier", 14, "keyed"),
        ("classes: {personal: {}", "classes: {personal: {implies: [personal.contact]}", "policy.class-cycle", 3, ""),
        ('mart: {datasets: ["mart.**"]}', 'mart: {datasets: ["marts.**"]}', "policy.empty-zone", 9, ""),
        ("severity: warning", "severity: warnig", "policy.value", 17, "warning"),
        ("version: 1", "version: 2", "policy.value", 1, ""),
        ("id: OWN1", "id: PII1", "policy.duplicate-rule", 15, ""),
        ("rules:", "rules:\n  - [", "policy.syntax", 12, ""),
        ("name: privacy", "name: privacy\nname: twice", "policy.syntax", 3, ""),
        ('["**.email"]', '["/(/"]', "policy.value", 5, ""),
        ("rules:", "waivers: [{rule: PII1, columns: [a.b], reason: r, approved_by: x, expires: 2027-02-30}]\nrules:",
         "policy.syntax", 10, ""),
        ("rules:", "waivers: [{rule: PII1, columns: [a.b], reason: r, approved_by: x, expires: soon}]\nrules:",
         "policy.date", 10, ""),
        ("rules:", "waivers: [{rule: PII1, columns: [a.b], reason: r, approved_by: x}]\nrules:",
         "policy.missing-key", 10, ""),
        ("rules:", "waivers: [{rule: PII9, columns: [a.b], reason: r, approved_by: x, expires: 2027-01-01}]\nrules:",
         "policy.unknown-rule", 10, "PII1"),
        ("kind: mask", "kind: aggregate", "policy.value", 7, ""),
        ('columns: ["**.email"]', 'columns: "**.email", tags: 3', "policy.value", 5, "classify.0.tags must be a list, not a number"),
        ("- {class: personal.contact", "- {clas: personal.contact", "policy.key", 5, "did you mean  class"),
        ("{flow: {class:", "{flow: {clas:", "policy.key", 13, "did you mean  class"),
        ("to: personal}", "to: none}", "policy.value", 7, ""),
    ],
)  # fmt: skip
def test_mistakes_have_a_place_and_the_nearest_word(warehouse, project, old, new, code, line, near):
    assert old in POLICY
    (project / "policies" / "privacy.yml").write_text(POLICY.replace(old, new, 1))
    done = warehouse("check")
    assert done.code == 2
    assert f"error[{code}]" in done.err
    assert f"policies/privacy.yml:{line}" in done.err
    assert near in done.err


@pytest.mark.parametrize(
    "command", [["policy", "lint"], ["policy", "test"], ["policy", "explain", "PII1"], ["classes"], ["ls", "zone:mart"],
                ["path", "class:personal", "mart.audience"], ["explain", "class:personal"]],
)  # fmt: skip
def test_every_command_tells_mistakes_alike(warehouse, project, command):
    policy = project / "policies" / "privacy.yml"
    for old, new, place, near in (
        ("severity: warning", "severty: warning", 17, "severity"),
        ("class: personal.contact, to", "class: personal.contct, to", 13, "personal.contact"),
        ("classes: {personal: {}", "classes: {personal: {implies: [personal.contact]}", 3, "circle"),
        (
            "rules:",
            "waivers: [{rule: PII1, columns: [a.b], reason: r, approved_by: x, expires: 2027-02-30}]\nrules:",
            10,
            "",
        ),
    ):
        policy.write_text(POLICY.replace(old, new, 1))
        done = warehouse(*command)
        assert done.code == 2
        assert f"policies/privacy.yml:{place}" in done.err
        assert near in done.err


@pytest.mark.parametrize(
    "text",
    ["", "[]", "a: &a [*a]", "a" * 100, "\x00", "version: 1\nname: x\nrules: {}\n", "[" * 3000, "? {a: b}\n: c\n"],
)
def test_hostile_files_are_mistakes_and_nothing_else(warehouse, project, text):
    (project / "policies" / "privacy.yml").write_text(text)
    done = warehouse("check")
    assert done.code == 2
    assert "policies/privacy.yml" in done.err


def test_no_policies_says_where_to_get_some(warehouse, project):
    (project / "policies" / "privacy.yml").unlink()
    done = warehouse("check")
    assert done.code == 2
    assert "pack:starter" in done.err
    assert warehouse("check", "--policy", "pack:starter").code == 0
    assert "did you mean  starter" in warehouse("check", "--policy", "pack:startr").err
    assert "--policy pack:starter" in warehouse("check", "--policy", "starter").err


@pytest.mark.parametrize("pack", ["starter", "gdpr", "hipaa", "pci"])
def test_packs_pass_their_own_tests(govtool, pack):
    done = govtool("policy", "test", "--policy", f"pack:{pack}")
    assert done.code == 0, done.out
    lint = govtool("policy", "lint", "--policy", f"pack:{pack}", "--today", "2026-11-21")
    assert "warning" not in lint.out.replace("0 warnings", "")


def test_a_zone_of_a_pack_gives_way_to_the_users(warehouse, project):
    both = ["--policy", "policies", "--policy", "pack:gdpr"]
    assert "GDPR-ART5-SHARE" not in warehouse("check", *both, "--fail-on", "none").out
    policy = project / "policies" / "privacy.yml"
    policy.write_text(POLICY.replace("rules:", '  gdpr-shared: {datasets: ["mart.**"]}\nrules:', 1))
    for wanted in (both, [*both[2:], *both[:2]]):
        done = warehouse("check", *wanted)
        assert done.code == 1
        assert "GDPR-ART5-SHARE error" in done.out
        assert "the zone gdpr-shared counts here, not the one at pack:gdpr:" in done.out + done.err
        assert "policies/privacy.yml:10" in done.out + done.err
    lint = warehouse("policy", "lint", *both)
    assert lint.out.count("zone-replaced") == 1
    other = project / "policies" / "other.yml"
    other.write_text('version: 1\nname: other\nzones: {gdpr-shared: {datasets: ["mart.**"]}}\n')
    refused = warehouse("check", *both)
    assert refused.code == 2
    assert "policy.duplicate-zone" in refused.err
    other.write_text(
        "version: 1\nname: other\nrules:\n  - {id: GDPR-ART30, title: t, require: {metadata: {class: gdpr, keys: [owner]}}}\n"
    )
    assert "policy.duplicate-rule" in warehouse("check", *both).err


def test_a_policy_test_that_fails_says_what_was_found(govtool, project):
    (project / "policies").mkdir()
    test = """tests:
  - name: wrong
    given: {schema: {crm.users: {email: text}}, sql: "create table mart.t as select email as c from crm.users"}
    expect: [{rule: PII1, column: mart.t.d}]
  - name: not SQL
    given: {sql: "create tabel ((("}
    expect: []
"""
    (project / "policies" / "p.yml").write_text(POLICY + test)
    done = govtool("policy", "test")
    assert done.code == 1
    assert "expected, not found: PII1 mart.t.d violated" in done.out
    assert "found, not expected: PII1 mart.t.c violated" in done.out
    assert "the SQL was not understood" in done.out


def test_lint_ends_as_check_does_where_a_zone_is_empty(warehouse, project):
    (project / "policies" / "privacy.yml").write_text(POLICY.replace('["mart.**"]', '["marts.**"]'))
    done = warehouse("policy", "lint")
    assert done.code == 2
    assert "the zone mart matches no dataset" in done.out
    assert "1 error, " in done.out


def test_lint_finds_what_matches_nothing_and_explain_says_it_in_words(warehouse, project):
    idle = '  - {class: personal, columns: ["**.nothing"]}\ndeclassify:'
    (project / "policies" / "privacy.yml").write_text(POLICY.replace("declassify:", idle))
    done = warehouse("policy", "lint")
    assert done.code == 0
    assert "classify-idle" in done.out
    assert warehouse("policy", "lint", "--strict").code == 1
    reported = warehouse("policy", "explain", "PII1").out
    assert "Data of personal.contact (nothing below it) must not reach zone mart as a value." in reported
    assert "unless declassified by keyed: mask @keyed, to personal" in reported


def test_the_schema_is_one_and_the_packs_keep_to_it(govtool):
    import yaml

    schema = json.loads(govtool("policy", "schema").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    for pack in (ROOT / "policies").glob("*.yml"):
        value = yaml.safe_load(pack.read_text())
        jsonschema.validate(json.loads(json.dumps(value, default=str)), schema)


def test_classes_say_why(warehouse):
    done = warehouse("classes", "mart.**", "-f", "json")
    answer = json.loads(done.out)
    jsonschema.validate(answer, json.loads((ROOT / "docs" / "schemas" / "classes-1.json").read_text()))
    reported = {(c["column"], c["mode"]): c for c in answer["columns"]}
    found = reported["mart.audience.who", "value"]
    assert (found["classes"], found["source"], found["declassified"]) == (["personal.contact"], "crm.users.email", [])
    assert [s["target"] for s in found["steps"]] == ["stg.users.address", "mart.audience.who"]
    assert reported["mart.hashed.who", "value"]["classes"] == ["personal"]
    assert reported["mart.hashed.who", "value"]["declassified"] == ["keyed"]
    assert "lower()" in warehouse("classes", "stg.users.address").out


def test_ls_selects_by_class_zone_and_change(warehouse, project):
    assert warehouse("ls", "class:personal.contact", "-f", "csv").out.splitlines()[1:] == [
        "crm.users.email,column,TEXT,,",
        "mart.audience.who,column,,,",
        "stg.users.address,column,,,",
    ]
    assert [line.split(",")[0] for line in warehouse("ls", "zone:mart", "-f", "csv").out.splitlines()[1:]] == [
        "mart.audience",
        "mart.hashed",
    ]
    (project / "etl" / "new.sql").write_text("create table mart.more as select address as whom from stg.users;\n")
    warehouse("ingest", "sql", "etl", "--dialect", "postgres")
    assert "mart.more.whom" in warehouse("ls", "changed:HEAD~1..HEAD").out
    assert "did you mean  personal" in warehouse("ls", "class:persnal").err
    listed = json.loads(warehouse("ls", "-f", "json").out)
    jsonschema.validate(listed, json.loads((ROOT / "docs" / "schemas" / "ls-1.json").read_text()))
    assert warehouse("ls", "--columns", "crm.users", "--exclude", "**.id", "-f", "csv").out.splitlines()[1:] == [
        "crm.users.email,column,TEXT,,"
    ]


def test_owners_and_tags_come_from_the_policy(warehouse, project):
    more = (
        "metadata:\n  - {datasets: [crm.users], owner: growth, tags: [gold]}\n  - {columns: ['**.who'], tags: [pii]}\n"
    )
    (project / "policies" / "privacy.yml").write_text(POLICY + more)
    assert "crm.users" in warehouse("ls", "owner:gr*").out
    assert "crm.users" in warehouse("ls", "tag:gold").out
    assert warehouse("ls", "tag:pii", "-f", "csv").out.count(",column,") == 2
    assert "crm.users" not in warehouse("check").out.split("OWN1 warning")[1]


def test_a_tag_in_sql_classifies(govtool, project):
    (project / "policies").mkdir()
    (project / "policies" / "tags.yml").write_text(
        "version: 1\nname: tags\nclasses: {personal: {}}\nzones: {mart: {datasets: ['mart.**']}}\n"
        "classify: [{class: personal, tags: ['pii:email']}]\n"
        "rules: [{id: T1, title: none in marts, deny: {flow: {class: personal, to: {zone: mart}}}}]\n"
        "tests: [{name: by tag, expect: [{rule: T1, column: mart.a.who}],\n"
        "  given: {dialect: snowflake, sql: \"create table c.u (x text tag (pii='email'));\n"
        '    create table mart.a as select x as who from c.u"}}]\n'
    )
    (project / "etl.sql").write_text(
        "create table crm.users (id int, contact varchar);\nuse schema crm;\n"
        "alter table users modify column contact set tag gov.PII = 'email';\n"
        "create table mart.audience as select contact as who, id from crm.users;\n"
    )
    assert govtool("policy", "test").code == 0
    assert govtool("init").code == 0
    assert govtool("ingest", "sql", "etl.sql", "--dialect", "snowflake").code == 0
    done = govtool("check")
    assert done.code == 1
    assert "crm.users.contact ──copy──▶ mart.audience.who  [etl.sql:4:38]" in done.out
    (project / "etl.sql").write_text((project / "etl.sql").read_text().replace("'email'", "'none'"))
    assert govtool("ingest", "sql", "etl.sql", "--dialect", "snowflake").code == 0
    assert govtool("check").code == 0


def test_a_rule_in_python_in_every_format(warehouse, project, monkeypatch):
    info = project / "site" / "acme-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[govtool.rules]\nlong = acme_check_module:long\nbad = acme_check_module:bad\n"
    )
    (project / "site" / "acme_check_module.py").write_text(
        "from govtool.policy.view import Found\n"
        "def long(view, options):\n"
        "    for name in view.columns('mart.**'):\n"
        "        if len(view.path('crm.users.email', name)) >= options['edges']:\n"
        "            yield Found(name, 'too far', 'crm.users.email', 'far')\n"
        "def bad(view, options):\n    raise OSError('no\\x1b[31m network')\n"
    )
    monkeypatch.syspath_prepend(str(project / "site"))
    (project / "policies" / "privacy.yml").write_text(
        "version: 1\nname: own\nrules:\n"
        "  - {id: L1, title: Not too far, severity: warning, python: long, with: {edges: 2}}\n"
        '  - {id: B1, title: "Never\\u202e works", python: bad}\n'
    )
    done = warehouse("check")
    assert done.code == 0
    assert "crm.users.email ──lower()──▶ stg.users.address ──copy──▶ mart.audience.who  [mart.sql:2:8]" in done.out
    assert "the rule failed: OSError: no" in done.out
    assert "\x1b" not in done.out
    assert warehouse("check", "--strict").code == 1
    value = json.loads(warehouse("check", "--format", "json").out)
    jsonschema.validate(value, CHECK)
    assert {r["rule"]: (r["form"], r["verdict"]) for r in value["rules"]} == {
        "L1": ("python", "violated"),
        "B1": ("python", "unknown"),
    }
    jsonschema.validate(json.loads(warehouse("check", "--format", "sarif").out), SARIF)
    for form in ("junit", "github", "markdown", "plain"):
        shown = warehouse("check", "--format", form).out
        assert ("mart.audience.who" in shown, "\u202e" in shown) == (True, False)
    known = warehouse("check", "--update-baseline", "known.json", "--strict")
    assert known.code == 1  # a rule that failed is never accepted
    assert "; 1 finding of rules that failed cannot be accepted" in known.err
    assert warehouse("check", "--baseline", "known.json", "--strict").code == 1  # what failed is not known
    assert "acme 1.2 (acme_check_module:long)" in warehouse("policy", "explain", "L1").out
    assert "B1 is Python code of acme 1.2" in warehouse("policy", "lint").out


@pytest.mark.parametrize(
    ("selector", "stated"),
    [
        ("zone:mrat", "did you mean  mart"),
        ("zone:", "zone: needs a value"),
        ("tag:", "tag: needs a value"),
        ("class:", "class: needs a value"),
        ("tag:nosuch", "no tag nosuch"),
        ("owner:nobody", "no owner nobody"),
        ("", "a selector is empty"),
        (" ", "a selector is empty"),
    ],
)
def test_a_selector_that_cannot_mean_anything_is_a_mistake(selector, stated, warehouse):
    done = warehouse("ls", selector)
    assert done.code == 2
    assert stated in done.err
    assert warehouse("ls", "crm.**", "--exclude", selector).code == 2


def test_what_a_star_may_bring_is_unknown_and_fails_with_strict(warehouse, project):
    (project / "etl" / "more.sql").write_text("create table mart.all as select * from ext.people;\n")
    (project / "etl" / "mart.sql").write_text("create table mart.audience as select id as n from crm.users;\n")
    assert warehouse("ingest", "sql", "etl", "--dialect", "postgres").code == 0
    done = warehouse("check")
    assert done.code == 0
    assert "not all columns of ext.people are known" in done.out


def test_the_classes_that_a_column_may_have_are_one_row(warehouse, project):
    (project / "etl" / "more.sql").write_text("create table mart.made as select day from made_elsewhere(1) as m;\n")
    assert warehouse("ingest", "sql", "etl", "--dialect", "postgres").code == 0
    asked = ("classes", "mart.made.day", "--policy", "pack:gdpr")
    found = json.loads(warehouse(*asked, "-f", "json").out)["columns"]
    names = [name for one in found for name in one["classes"]]
    assert len(names) > 5
    assert {one["mode"] for one in found} == {"unknown"}
    shown = warehouse(*asked).out
    assert shown.count("mart.made.day") == 1
    assert f"any of {len(names)}: {names[0]}, {names[1]} …" in shown
    assert f"any of {len(names)}: {', '.join(names)}" in warehouse(*asked, "-f", "plain").out


def test_further_mistakes_are_counted_and_told_by_their_places(warehouse, project):
    items = "".join("  - {class: personal, colums: [a]}\n" for _ in range(30))
    (project / "policies" / "privacy.yml").write_text(
        f"version: 1\nname: n\nclasses: {{personal: {{}}}}\nclassify:\n{items}"
    )
    reported = warehouse("check").err
    assert "29 more: policies/privacy.yml:6, " in reported
    assert "policies/privacy.yml:25 and 9 others" in reported
    assert "…" not in reported


def test_policies_without_tests_are_no_failure(warehouse):
    done = warehouse("policy", "test")
    assert done.code == 0
    assert "0 tests passed, 0 failed" in done.out
    assert "the policies have no tests" in done.err
    assert warehouse("policy", "test", "-k", "nosuch").code == 2
