"""The moto server, made to serialise writes: by itself it lets two writers create one object at the same time.

python -m bench.moto_serialised -H 127.0.0.1 -p 5000
"""

from __future__ import annotations

import sys
import threading
from functools import wraps
from typing import Any

from moto.s3.responses import S3Response
from moto.server import main

_LOCK = threading.Lock()
_put = S3Response.put_object


@wraps(_put)
def _one_at_a_time(*arguments: Any, **options: Any) -> Any:
    with _LOCK:
        return _put(*arguments, **options)


if __name__ == "__main__":
    S3Response.put_object = _one_at_a_time  # type: ignore[method-assign]
    main(sys.argv[1:])
