"""Links in a dbt project that lead out of it: they are noted, and followed only where the user allows it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from govtool.capture.dbt.project import links_out, read_projects

SECRET = "{% macro m() %}secret{% endmacro %}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of which each part is a link out of it."""
    for folder in ("out/pkg/macros", "out/more", "p/models", "p/macros", "p/seeds", "p/dbt_packages"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "out/m.sql").write_text(SECRET)
    (tmp_path / "out/pkg/macros/m.sql").write_text(SECRET)
    (tmp_path / "out/pkg/dbt_project.yml").write_text("name: pkg\n")
    (tmp_path / "out/s.yml").write_text("models: [{name: a, description: secret}]\n")
    (tmp_path / "out/seed.csv").write_text("secret,b\n")
    (tmp_path / "out/packages.yml").write_text("packages: [{package: x/secret}]\n")
    project = tmp_path / "p"
    (project / "dbt_project.yml").write_text("name: shop\nmodel-paths: [models, linked]\n")
    (project / "models/a.sql").write_text("select 1 as a")
    for link, target in (
        ("macros/m.sql", "out/m.sql"),
        ("models/s.yml", "out/s.yml"),
        ("seeds/seed.csv", "out/seed.csv"),
        ("dbt_packages/pkg", "out/pkg"),
        ("packages.yml", "out/packages.yml"),
        ("linked", "out/more"),
    ):
        (project / link).symlink_to(tmp_path / target)
    return project


OUT = {"macros/m.sql", "models/s.yml", "seeds/seed.csv", "dbt_packages/pkg", "packages.yml", "linked"}


@pytest.mark.parametrize("path", [".", "models", "models/a.sql"])
def test_links_are_noted_and_not_followed(project: Path, path: str) -> None:
    (found,) = read_projects([project / path], project)
    assert "secret" not in repr(found)
    assert {note.file for note in links_out([project / path], project)} == OUT
    (followed,) = read_projects([project / path], project, follow_links=True)
    assert set(followed.packages) == {"pkg"}
    assert followed.own.macros == {"m": SECRET}
    assert followed.seeds == {"seed": ("secret", "b")}
    assert followed.missing == {"secret"}
    assert "description" in repr(followed.properties.facts)


def test_links_within_what_is_read_are_followed(project: Path) -> None:
    folder = project.parent
    (found,) = [each for each in read_projects([folder], folder) if each.own.name == "shop"]
    assert found.own.macros == {"m": SECRET}
    assert list(links_out([folder], folder)) == []


@pytest.fixture
def naming(tmp_path: Path) -> Path:
    """A project whose settings name folders outside of it, with no link."""
    project = tmp_path / "repo" / "p"
    for file, text in (
        ("out/pkg/dbt_project.yml", "name: pkg\nmacro-paths: [macros, ../../more]\n"),
        ("out/pkg/macros/m.sql", SECRET),
        ("more/n.sql", "{% macro n() %}secret{% endmacro %}"),
        ("macros/own.sql", "{% macro own() %}secret{% endmacro %}"),
        ("models/s.yml", "models: [{name: a, description: secret}]\n"),
        ("seeds/seed.csv", "secret,b\n"),
        ("installed/other/dbt_project.yml", "name: other\n"),
        ("repo/p/packages.yml", "packages: [{local: ../../out/pkg}]\n"),
        ("repo/p/models/a.sql", "select 1 as a"),
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    (project / "dbt_project.yml").write_text(
        f"name: shop\nmacro-paths: [{tmp_path}/macros]\nmodel-paths: [models, ../../models]\n"
        "seed-paths: [../../seeds]\npackages-install-path: ../../installed\n"
    )
    return project


NAMED = {
    ("dbt_project.yml", "../../macros"),
    ("dbt_project.yml", "../../models"),
    ("dbt_project.yml", "../../seeds"),
    ("dbt_project.yml", "../../installed"),
    ("packages.yml", "../../out/pkg"),
}


@pytest.mark.parametrize("path", [".", "models/a.sql"])
@pytest.mark.parametrize("checkout", [None, "repo"], ids=["no Git", "another checkout"])
def test_folders_that_settings_name_outside_of_the_checkout_are_noted(
    naming: Path, path: str, checkout: str | None
) -> None:
    if checkout:
        (naming.parent / ".git").mkdir()
    (found,) = read_projects([naming / path], naming)
    assert "secret" not in repr(found)
    assert set(found.packages) == set()
    notes = list(links_out([naming / path], naming))
    assert {(note.file, note.message.split()[1].rstrip(",")) for note in notes} == NAMED
    assert all("--follow-links" in note.message and note.severity == "warning" for note in notes)
    (followed,) = read_projects([naming / path], naming, follow_links=True)
    assert (set(followed.packages), set(followed.own.macros)) == ({"pkg", "other"}, {"own"})
    assert set(followed.packages["pkg"].macros) == {"m", "n"}
    assert followed.seeds == {"seed": ("secret", "b")}


def test_folders_that_settings_name_in_the_same_checkout_are_read(naming: Path) -> None:
    """Who wrote the settings wrote them, too; and so it is where all of it is read."""
    (naming.parents[1] / ".git").mkdir()
    (found,) = read_projects([naming], naming)
    assert (set(found.packages), set(found.own.macros)) == ({"pkg", "other"}, {"own"})
    assert set(found.packages["pkg"].macros) == {"m", "n"}
    assert list(links_out([naming], naming)) == []
    (naming.parents[1] / ".git").rmdir()
    (found,) = [each for each in read_projects([naming.parents[1]], naming.parents[1]) if each.own.name == "shop"]
    assert set(found.packages) == {"pkg", "other"}


def test_a_home_that_is_a_checkout_is_no_project(naming: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some keep their settings in Git, with their home as the work tree."""
    home = naming.parents[1]
    (home / ".git").mkdir()
    monkeypatch.setenv("HOME", str(home))
    (found,) = read_projects([naming], naming)
    assert "secret" not in repr(found)


def test_loops_devices_and_pipes(tmp_path: Path) -> None:
    for folder in ("models", "macros", "seeds"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "loop").symlink_to(tmp_path)
        for suffix in (".sql", ".yml", ".csv", ".md"):
            (tmp_path / folder / f"itself{suffix}").symlink_to(f"itself{suffix}")
            (tmp_path / folder / f"zero{suffix}").symlink_to("/dev/zero")
            os.mkfifo(tmp_path / folder / f"pipe{suffix}")
    (tmp_path / "dbt_project.yml").write_text("name: shop\n")
    for follow_links in (False, True):
        (found,) = read_projects([tmp_path], tmp_path, follow_links=follow_links)
        assert not found.seeds
        assert not found.own.macros
    assert {note.file for note in links_out([tmp_path], tmp_path)} >= {"models/zero.yml", "seeds/zero.csv"}
