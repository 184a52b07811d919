"""Call sites: Spark describes what it runs by the place in the job that called it, never by one of ours."""

from __future__ import annotations

import os
import sys
from typing import Any

OWN = "recorded-by-govtool"
"""The file that a wrapper's frame is of: none, in the folder of pyspark."""


def pyspark_folder() -> str:
    """The folder of pyspark, with a separator at its end."""
    return os.path.join(os.path.dirname(os.path.abspath(str(sys.modules["pyspark"].__file__))), "")


def standing_for(original: Any, wrapper: Any) -> Any:
    """Return a wrapper whose frame counts as one of pyspark's.

    Pyspark takes the frame before the first of its own for the place in the job, and the name of its own for what is
    called there.
    """
    name = str(getattr(original, "__name__", wrapper.__name__))
    wrapper.__code__ = wrapper.__code__.replace(co_filename=os.path.join(pyspark_folder(), OWN), co_name=name)
    return wrapper
