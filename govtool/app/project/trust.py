"""Trust in a checkout's settings: a repository's ``govtool.toml`` may not choose a store elsewhere unless you agree.

A store outside of the project's folder, remote or not, is opened only if the user named it (``--store``,
``GOVTOOL_STORE``) or agreed once for this file and this address (``govtool trust``). This holds for reading, too: it
would send requests that the user's credentials sign, and take answers, which gates decide by, from a stranger.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from govtool.config import CONFIG_FILE, Config, Setting, load_config, store_setting
from govtool.errors import UsageError
from govtool.redaction import clean_location
from govtool.store.backends.location import local_path

NAMED = ("--store", "GOVTOOL_STORE")
"""Origins of a store that the user named."""


@dataclass(frozen=True, slots=True)
class TrustedStore:
    """The agreement to use a store that a file names.

    Attributes:
        file: The settings file, or the folder of the project, as an absolute path.
        store: The store's address, as in that file.
    """

    file: str
    store: str


def leaves_project(setting: Setting, config: Config) -> bool:
    """Return whether a checkout's settings, not the user, choose a store outside of the project's folder."""
    store = str(setting.value)
    if setting.origin in NAMED:
        return False
    if store.startswith("memory://"):
        return False
    path = local_path(store)  # as the store itself will read the address
    if path is None:
        return True
    try:
        return not (config.root / path).resolve().is_relative_to(config.root.resolve())
    except (OSError, RuntimeError, ValueError):
        return True


def require_trust(setting: Setting, config: Config, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse to open a store that the user neither named nor agreed to.

    Raises:
        UsageError: ``usage.untrusted-store``; the hint holds both commands that allow it.
    """
    if not leaves_project(setting, config) or _key(setting, config) in trusted(environ):
        return
    shown = clean_location(str(setting.value))
    raise UsageError(
        f"{config.file or config.root} names a store outside of its folder: {shown}",
        code="usage.untrusted-store",
        location=str(config.file or config.root),
        hint=f"if you trust it: govtool trust, once; or name the store yourself: --store {shlex.quote(shown)}",
    )


def trust(environ: Mapping[str, str] = os.environ, *, revoke: bool = False) -> TrustedStore:
    """Agree to the store that this project's settings name, or take that back.

    Raises:
        UsageError: The settings name no store outside of the folder (``usage.nothing-to-trust``).
    """
    config = load_config(Path.cwd())
    setting = store_setting(None, config, {})
    if not leaves_project(setting, config):
        raise UsageError(
            "the settings here name no store outside of the project's folder",
            code="usage.nothing-to-trust",
            location=str(config.file or config.root),
            hint="govtool config show",
        )
    chosen = _key(setting, config)
    others = [each for each in trusted(environ) if each != chosen]
    _write(others if revoke else [*others, chosen], environ)
    return chosen


def trusted(environ: Mapping[str, str] = os.environ) -> tuple[TrustedStore, ...]:
    """Return the agreements of this user. A file that cannot be read holds none."""
    try:
        entries = json.loads(_file(environ).read_text(encoding="utf-8"))["trusted"]
        return tuple(TrustedStore(str(entry["file"]), str(entry["store"])) for entry in entries)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ()


def _key(setting: Setting, config: Config) -> TrustedStore:
    file = (config.file or config.root / CONFIG_FILE).resolve()
    return TrustedStore(str(file), clean_location(str(setting.value)))


def _file(environ: Mapping[str, str]) -> Path:
    folder = environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(folder) / "govtool" / "trusted.json"


def _write(entries: list[TrustedStore], environ: Mapping[str, str]) -> None:
    file = _file(environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"trusted": [{"file": each.file, "store": each.store} for each in entries]}, indent=1)
    part = file.with_name(f"{file.name}.{os.getpid()}")
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(file)
