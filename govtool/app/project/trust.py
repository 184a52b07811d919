"""Trust in a checkout's settings: a repository's ``govtool.toml`` may not choose places elsewhere unless you agree.

A store outside of the project's folder, remote or not, is opened only if the user named it (``--store``,
``GOVTOOL_STORE``) or agreed once for this file and this address (``govtool trust``). This holds for reading, too: it
would send requests that the user's credentials sign, and take answers, which gates decide by, from a stranger. The same
holds for what ``[[sources]]`` and ``[sql] schema`` name: see ``source_trust``.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from govtool.app.project.agreements import (
    SOURCE,
    STORE,
    TrustedAddress,
    agreement,
    is_outside,
    trusted,
    write_trusted,
)
from govtool.app.project.source_trust import outside_sources
from govtool.config import Config, Setting, load_config, store_setting
from govtool.errors import UsageError
from govtool.redaction import clean_location
from govtool.store.backends.location import local_path

NAMED = ("--store", "GOVTOOL_STORE")
"""Origins of a store that the user named."""


def leaves_project(setting: Setting, config: Config) -> bool:
    """Return whether a checkout's settings, not the user, choose a store outside of the project's folder."""
    store = str(setting.value)
    if setting.origin in NAMED:
        return False
    if store.startswith("memory://"):
        return False
    path = local_path(store)  # as the store itself will read the address
    return path is None or is_outside(path, config.root)


def require_trust(setting: Setting, config: Config, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse to open a store that the user neither named nor agreed to.

    Raises:
        UsageError: ``usage.untrusted-store``; the hint holds both commands that allow it.
    """
    if not leaves_project(setting, config):
        return
    needed = agreement(str(setting.value), config, STORE)
    if needed in trusted(environ):
        return
    shown = clean_location(str(setting.value))
    raise UsageError(
        f"{config.file or config.root} names a store outside of its folder: {needed.address}",
        code="usage.untrusted-store",
        location=str(config.file or config.root),
        hint=f"if you trust it: govtool trust, once; or name the store yourself: --store {shlex.quote(shown)}",
    )


def trust(environ: Mapping[str, str] = os.environ, *, revoke: bool = False) -> tuple[TrustedAddress, ...]:
    """Agree to the store and the sources that this project's settings name outside of the folder, or take that back.

    Raises:
        UsageError: The settings name nothing outside of the folder (``usage.nothing-to-trust``).
    """
    config = load_config(Path.cwd())
    setting = store_setting(None, config, {})
    chosen = [agreement(str(setting.value), config, STORE)] if leaves_project(setting, config) else []
    chosen += [agreement(address, config, SOURCE) for address in outside_sources(config)]
    if not chosen:
        raise UsageError(
            "the settings here name no store and no source outside of the project's folder",
            code="usage.nothing-to-trust",
            location=str(config.file or config.root),
            hint="govtool config show",
        )
    others = [each for each in trusted(environ) if each not in chosen]
    write_trusted(others if revoke else [*others, *chosen], environ)
    return tuple(chosen)
