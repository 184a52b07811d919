"""A removal of two texts that is killed: ``python -m bench.attacks.forgets STORE K``, at its K-th write."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import Any

TEXTS = ("SECRET-ONE", "SECRET-TWO")
"""What is removed."""


class Killing:
    """Objects whose K-th write ends the process."""

    def __init__(self, inner: Any, k: int) -> None:
        self._inner = inner
        self._left = k

    def __getattr__(self, name: str) -> Any:
        """Everything is passed on; a write is counted before it is made."""
        if name in ("create", "put", "delete", "create_many"):
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return getattr(self._inner, name)


def leak(store: Any) -> None:
    """Write two texts into a fragment of an old version, which a branch has, too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from govtool.store import Changes, Fragment, branches

    def commit(*texts: str) -> None:
        found = []
        for text in texts:
            sink = io.BytesIO()
            pq.write_table(pa.table({"text": [text]}), sink)
            found.append(Fragment("etl", "notes", sink.getvalue(), 1))
        store.commit(Changes(("etl",), tuple(found)), message="m", author="ann", batch=texts[0])

    commit(" ".join(TEXTS), TEXTS[1], "clean")
    branches.create_branch(store, "next", store.head(), author="ann")
    commit("later", "more")


def main(uri: str, k: int) -> None:
    """Remove both, one after the other."""
    from govtool.app.upkeep.forget import ForgetRequest, forget_text
    from govtool.store import Store

    store = Store.open(uri)
    store.objects = Killing(store.objects, k)
    for text in TEXTS:
        forget_text(store, ForgetRequest(texts=(text,), author="ann"))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
