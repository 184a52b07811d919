"""The documentation as a site: links lead somewhere, the reference is that of the program, and every command parses."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from govtool.cli.commands import COMMANDS
from govtool.cli.reference import reference
from govtool.cli.shared.command import as_command

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md"))
READ = [*PAGES, "README.md", "CONTRIBUTING.md"]

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(govtool [^`]+)`")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and mkdocs make them."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    plain = (re.sub(r"[`*\[\]]|\([^)]*\)(?=$)", "", title) for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE))
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip()) for title in plain}


@pytest.mark.parametrize("page", READ)
def test_links_lead_to_files_and_headings(page):
    here = ROOT / page
    dead = []
    for link in _LINK.findall(_FENCE.sub("", here.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (here.parent / path).resolve() if path else here
        if (
            not target.exists()
            or (page.startswith("docs/") and not target.is_relative_to(DOCS))
            or (anchor and target.suffix == ".md" and anchor not in anchors(target))
        ):
            dead.append(link)
    assert dead == []


def test_every_page_is_in_the_menu_once_and_every_schema_is_listed():
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]

    def pages(entry) -> list[str]:
        if isinstance(entry, str):
            return [f"docs/{entry}"]
        return [page for part in (entry.values() if isinstance(entry, dict) else entry) for page in pages(part)]

    assert sorted(pages(menu)) == sorted(PAGES)
    listed = re.findall(r"\(schemas/([\w-]+)\.json\)", (DOCS / "schemas.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(path.stem for path in (DOCS / "schemas").glob("*.json"))


def test_the_reference_of_commands_is_that_of_the_program():
    written = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert written == "".join(reference()), "scripts/cli-reference writes it anew"


OF_THE_PROGRAM = frozenset({"--version", "--help", "-h", "--install-completion", "--show-completion"})
"""Options that stand before any command; all others belong to one."""

# ---- commands --------------------------------------------------------------------------------------------


def command_of(words: list[str]):
    """The command that words name and the words behind it; None for a group or no command."""
    entry: object = COMMANDS
    for at, word in enumerate(words):
        if not isinstance(entry, dict):
            break
        if word not in entry:
            return None
        entry = entry[word]
        if not isinstance(entry, dict):
            return as_command(word, entry.load()), words[at + 1 :]
    return None


def written_commands(page: str) -> list[str]:
    """Whole commands of a page: lines of console, bash and text blocks, and those of YAML steps."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for language, block in _BLOCK.findall(text):
        if language not in ("console", "bash", "sh", "text", "yaml"):
            continue
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"^\s*(?:\$|- run:|run:)?\s*", "", line)
            found += [part.strip() for part in re.split(r"&&|\|\||;", line) if part.strip().startswith("govtool ")]
    return found


def unknown_options(command: str) -> list[str]:
    """Options of a command line that the command does not have."""
    command = re.split(r"\s#|\s{2,}|<<<|\s\|\s|\s>\s", command)[0]
    try:
        words = shlex.split(command)[1:]
    except ValueError:
        return []
    if words and words[0].startswith("-"):
        return [word for word in words[:1] if word not in OF_THE_PROGRAM]
    named = command_of(words)
    if named is None:
        return []
    known = {name for each in named[0].params for name in (*each.opts, *each.secondary_opts)} | {"--help", "-h"}
    given = [word.partition("=")[0] for word in named[1] if re.match(r"--?[a-z]", word)]
    if "--" in named[1]:
        given = [word for word in given if word in named[1][: named[1].index("--")]]
    return [option for option in given if option not in known]


@pytest.mark.parametrize("page", [page for page in READ if page != "docs/cli.md"])
def test_options_of_documented_commands_exist(page):
    text = _FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    commands = [*written_commands(page), *_INLINE.findall(text)]
    wrong = {command: unknown_options(command) for command in commands}
    assert {command: options for command, options in wrong.items() if options} == {}


def test_commands_are_found_at_all():
    assert sum(len(written_commands(page)) for page in READ) > 150
    assert unknown_options("govtool impact x --no-such") == ["--no-such"]


MKDOCS = shutil.which("mkdocs", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")


@pytest.mark.skipif(MKDOCS is None, reason="mkdocs is not installed: pip install govtool[docs]")
def test_the_site_builds_strictly(tmp_path):
    words = [str(MKDOCS), "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        words, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
