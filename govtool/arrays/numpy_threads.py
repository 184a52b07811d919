"""numpy with one thread of OpenBLAS.

Gathers and sorts have no use for a pool of threads, and starting one takes 0.03 s of CPU on two cores and more where
there are more. OpenBLAS reads the setting while it is loaded. It is removed again, as programs that govtool starts
inherit the environment. Where numpy is loaded already, nothing changes.
"""

from __future__ import annotations

import os

_SETTING = "OPENBLAS_NUM_THREADS"
_own = _SETTING not in os.environ
os.environ.setdefault(_SETTING, "1")

import numpy as np  # noqa: E402, TID253 - imported only where graphs are large, or by what has numpy already

if _own:
    del os.environ[_SETTING]

__all__ = ["np"]
