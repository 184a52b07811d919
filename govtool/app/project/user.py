"""Whoever runs govtool, as the author of commits."""

from __future__ import annotations

import getpass


def user_name() -> str:
    """The name of whoever runs this."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container without a user database
        return "unknown"
