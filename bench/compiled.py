"""A copy of the package with the SQL extractor compiled, as a wheel holds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.corpora import ROOT


def compiled(folder: Path, checkout: Path = ROOT) -> Path:
    """Compile the package of a checkout into a folder, and return the folder, for ``PYTHONPATH``.

    Raises:
        subprocess.CalledProcessError: There is no mypyc, no C compiler, or one of them refuses.
    """
    command = [sys.executable, str(checkout / "hatch_build.py"), str(folder)]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)
    return folder
