"""Builds wheels with the SQL extractor compiled: its modules as they are, through mypyc.

Reading scripts and walking sqlglot's trees cost about as much as the parse does when Python interprets them, and less
than half of that when they are compiled. A compiled wheel has the modules below as extension modules beside their
sources; the answers are the same.

GOVTOOL_COMPILE decides: ``1`` compiles, and fails where that is not possible; ``auto`` compiles where it is; ``0``, the
default, builds pure Python in seconds. An editable install is never compiled.

    python hatch_build.py FOLDER      a copy of the package in FOLDER, compiled; for tests and benchmarks
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parent
PACKAGE = "govtool"
LIBRARY = "govtool"
"""Names the shared library, ``govtool__mypyc``, of which the extension modules are thin faces."""

COMPILED = (
    "functions/[a-z]*.py",
    "names.py",
    "capture/sql/syntax/marks.py",
    "capture/sql/syntax/nodes.py",
    "capture/sql/options.py",
    "capture/sql/resolve/batch.py",
    "capture/sql/resolve/definers.py",
    "capture/sql/resolve/definitions.py",
    "capture/sql/resolve/relations.py",
    "capture/sql/folding/emit.py",
    "capture/sql/resolve/inline.py",
    "capture/sql/syntax/lexer.py",
    "capture/sql/resolve/states.py",
    "capture/sql/resolve/live_variables.py",
    "capture/sql/folding/fold.py",
    "capture/sql/folding/versions.py",
    "capture/sql/extract.py",
    "capture/sql/syntax/fingerprint.py",
    "capture/sql/syntax/literals.py",
    "capture/sql/syntax/redact.py",
    "capture/sql/syntax/tree_search.py",
    "capture/sql/folding/results.py",
    "capture/sql/resolve/surroundings.py",
    "capture/sql/resolve/tables.py",
    "capture/sql/resolve/temporary_tables.py",
    "capture/sql/scripts/**/[a-z]*.py",
    "capture/sql/walk/**/[a-z]*.py",
)
"""What is compiled, below the package. ``__init__`` modules are not: they hold nothing."""


_DIRECT = ["-fno-semantic-interposition"] if sys.platform == "linux" else []
"""Calls among the modules go straight: no function is replaced from outside of the library."""


def sources(root: Path = ROOT) -> list[str]:
    """Return the modules to compile, relative to ``root``."""
    found = {path for pattern in COMPILED for path in (root / PACKAGE).glob(pattern)}
    return sorted(path.relative_to(root).as_posix() for path in found)


_OPTIMISATION = os.environ.get("GOVTOOL_OPTIMISATION", "3")
"""The level of the C compiler; the tests take a lower one, which compiles in half the time."""


def wanted() -> str:
    """Return ``1``, ``auto`` or ``0``."""
    return os.environ.get("GOVTOOL_COMPILE", "0")


def compile_into(folder: Path, root: Path = ROOT) -> list[Path]:
    """Compile the modules; the extension modules lie below ``folder`` as they do below ``site-packages``.

    Returns:
        Their paths.

    Raises:
        Exception: There is no mypyc, no C compiler, or one of them refuses. Their exceptions have no common base.
        SystemExit: The same, where they take themselves for programs.
    """
    from setuptools import Distribution

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            os.chdir(root)  # module names follow from relative paths
            extensions = _in_a_child(_translate, sources(root), scratch)
            for extension in extensions:
                extension.extra_compile_args = [*(extension.extra_compile_args or []), *_DIRECT]
            command = _on_all_cores()(Distribution({"name": PACKAGE, "ext_modules": extensions}))
            command.build_lib, command.build_temp = str(folder), f"{scratch}/o"
            command.ensure_finalized()
            command.run()
            return [Path(output) for output in command.get_outputs()]
        finally:
            os.chdir(before)


def _translate(modules: list[str], scratch: str) -> list[Any]:
    """Translate the modules to C below ``scratch``; return setuptools' extensions, not yet built."""
    from mypyc.build import mypycify

    options = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent", "--no-warn-unused-ignores"]
    extensions: list[Any] = mypycify(
        [*options, f"--cache-dir={scratch}/cache", *modules],
        opt_level=_OPTIMISATION,
        debug_level="0",
        multi_file=True,
        group_name=LIBRARY,
        target_dir=f"{scratch}/c",
    )
    return extensions


def _in_a_child(function: Callable[..., list[Any]], *arguments: Any) -> list[Any]:
    """Call the function in a forked process, where there are such.

    At the end of a process, mypy's trees take as long to be freed as they took to be built. A forked child ends
    without that.

    Raises:
        RuntimeError: The child ended without a result; it has said why on stderr.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        return function(*arguments)
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    child = fork.Process(target=lambda: sender.send(function(*arguments)))
    child.start()
    sender.close()  # the child's copy is the only one, so that its end is seen
    try:
        result: list[Any] = receiver.recv()
    except EOFError:
        child.join()
        raise RuntimeError(f"mypyc ended with exit code {child.exitcode}, see above") from None
    child.join()
    return result


def _on_all_cores() -> Any:
    """A ``build_ext`` that compiles the C files of one extension side by side; setuptools takes them in turn."""
    from setuptools.command.build_ext import build_ext

    class BuildOnAllCores(build_ext):
        def build_extension(self, ext: Any) -> None:
            def compiled(source: str) -> list[str]:
                found: list[str] = self.compiler.compile(
                    [source],
                    output_dir=self.build_temp,
                    macros=ext.define_macros,
                    include_dirs=ext.include_dirs,
                    extra_postargs=ext.extra_compile_args,
                    depends=ext.depends,
                )
                return found

            largest_first = sorted(ext.sources, key=lambda source: -Path(source).stat().st_size)
            with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
                objects = [name for names in threads.map(compiled, largest_first) for name in names]
            ext.sources, ext.extra_objects = [], [*ext.extra_objects, *objects]
            super().build_extension(ext)

    return BuildOnAllCores


class CompileHook(BuildHookInterface):  # type: ignore[misc, valid-type]
    """Adds the extension modules to a wheel."""

    def dependencies(self) -> list[str]:
        """What the build needs beside hatchling; see hatchling's ``BuildHookInterface``."""
        return [] if wanted() == "0" else ["mypy>=1.18", "setuptools>=77", "sqlglot>=30.30,<31"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say so in the wheel's tag; see hatchling's ``BuildHookInterface``."""
        if version == "editable" or wanted() == "0" or sys.implementation.name != "cpython":
            return
        folder = Path(tempfile.mkdtemp(prefix="govtool-"))
        try:
            built = compile_into(folder, Path(self.root))
        except (Exception, SystemExit) as error:
            if wanted() == "1":
                raise
            self.app.display_warning(f"govtool is built as pure Python, as it cannot be compiled here: {error}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"].update({str(path): path.relative_to(folder).as_posix() for path in built})

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing behind."""
        for path in build_data["force_include"]:
            if Path(path).name.startswith(f"{LIBRARY}__mypyc"):
                shutil.rmtree(Path(path).parent, ignore_errors=True)


def main() -> None:
    """Make a copy of the package in the folder that the command line names, and compile it."""
    folder = Path(sys.argv[1]).resolve()
    shutil.rmtree(folder / PACKAGE, ignore_errors=True)
    shutil.copytree(ROOT / PACKAGE, folder / PACKAGE, ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.pyd"))
    for path in compile_into(folder):
        print(path)


if __name__ == "__main__":
    main()
