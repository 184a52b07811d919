"""The configuration of a model's file for its template: ``config``, ``model``, ``model.config``.

A setting that the file has not may be made elsewhere, in dbt_project.yml or a property file: it is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from govtool.capture.sql.templates.run import MacroRun
from govtool.capture.sql.templates.unknown import Unknown, plain


class ConfigCall:
    """``config``: called to configure, or to read a setting."""

    def __init__(self, run: MacroRun, call: Callable[..., str]) -> None:
        self._run = run
        self._call = call

    def __call__(self, *args: object, **options: object) -> str:
        """Configure; renders to nothing."""
        return self._call(*args, **options)

    def get(self, name: object = "", default: object = None, **_: object) -> object:
        """A setting: as the file has it, else its default, or unknown."""
        found = self._run.config.get(str(name), default)
        return Unknown(plain(name)) if found is None else found

    def require(self, name: object = "", **_: object) -> object:
        """A setting that must be there: as the file has it, or unknown."""
        return self.get(name)

    def set(self, *_: object, **__: object) -> str:
        """Does nothing."""
        return ""


class Model:
    """``model``: what is known of it is its name, and what its file configures."""

    def __init__(self, name: str, run: MacroRun) -> None:
        package = run.project.own.name
        self.name = self.alias = name
        self.package_name = package
        self.unique_id = f"model.{package}.{name}"
        self.config = ModelConfig(run)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return Unknown(f"model_{plain(name)}")


class ModelConfig:
    """``model.config``: what the file configures; anything else may be configured elsewhere."""

    def __init__(self, run: MacroRun) -> None:
        self._run = run

    def get(self, name: object = "", default: object = None) -> object:
        """A setting: as the file has it, else its default, or unknown."""
        found = self._run.config.get(str(name), default)
        return Unknown(f"model_config_{plain(name)}") if found is None else found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.get(name)

    __getitem__ = get
