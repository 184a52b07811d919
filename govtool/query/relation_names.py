"""Names of relations that each run of a workflow keeps in a folder of its own.

``STATE/RUN/joined`` of two runs is one relation, ``STATE/joined``: runs are compared by relation, since nothing that
two runs wrote would pair otherwise.
"""

from __future__ import annotations

from collections.abc import Container


def relation_name(dataset: str, folders: Container[str]) -> str:
    """The name of a dataset without the folders of runs.

    Args:
        dataset: A dataset's name.
        folders: Names of the runs' own folders.
    """
    return "/".join(part for part in dataset.split("/") if part not in folders or not part)
