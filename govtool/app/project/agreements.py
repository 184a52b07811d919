"""What a user agreed to: places that the settings of a checkout name outside of its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from govtool.config import CONFIG_FILE, Config
from govtool.redaction import clean_location

STORE, SOURCE = "store", "source"
"""What an address is used as; an agreement holds for one of them."""


@dataclass(frozen=True, slots=True)
class TrustedAddress:
    """The agreement to use a place that a file names.

    Attributes:
        file: The settings file, or the folder of the project, as an absolute path.
        address: The place, as in that file; of a link in the project, also where it leads to, which may change.
        use: ``STORE`` or ``SOURCE``.
    """

    file: str
    address: str
    use: str = STORE


def is_outside(path: Path | str, root: Path) -> bool:
    """Return whether a file or folder lies outside of a folder, links followed."""
    try:
        return not (root / path).resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError):
        return True


def agreement(address: str, config: Config, use: str) -> TrustedAddress:
    """Return the agreement that a place of the settings needs."""
    file = (config.file or config.root / CONFIG_FILE).resolve()
    return TrustedAddress(str(file), clean_location(address) + _led_to(address, config.root), use)


def _led_to(address: str, root: Path) -> str:
    """Where a path leads to by way of a link that lies in the project; else nothing."""
    if "://" in address:
        return ""
    path = root / address
    plain, real = os.path.normpath(path), os.path.realpath(path)
    through = os.path.realpath(plain) != real or Path(plain).is_relative_to(root)
    return f" -> {real}" if through and real != plain and is_outside(real, root) else ""


def trusted(environ: Mapping[str, str] = os.environ) -> tuple[TrustedAddress, ...]:
    """Return the agreements of this user. A file that cannot be read holds none."""
    try:
        entries = json.loads(_file(environ).read_text(encoding="utf-8"))["trusted"]
        return tuple(
            TrustedAddress(str(entry["file"]), str(entry[use]), use)
            for entry in entries
            for use in (STORE, SOURCE)
            if use in entry
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ()


def write_trusted(entries: Sequence[TrustedAddress], environ: Mapping[str, str]) -> None:
    """Replace the agreements of this user."""
    file = _file(environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"trusted": [{"file": each.file, each.use: each.address} for each in entries]}, indent=1)
    part = file.with_name(f"{file.name}.{os.getpid()}")
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(file)


def _file(environ: Mapping[str, str]) -> Path:
    folder = environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(folder) / "govtool" / "trusted.json"
