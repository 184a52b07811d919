"""Parquet out of memory, without the machinery for folders of files."""

from __future__ import annotations

import subprocess
import sys

from govtool.model.fact import Fact, encode_facts

_READ = """
import sys
from govtool.model.parquet import read_parquet
print(read_parquet(bytes.fromhex(sys.argv[1])).num_rows, "pyarrow.dataset" in sys.modules)
"""


def test_reading_starts_no_threads_of_the_dataset_api():
    data = encode_facts([Fact("d", None, "owner", "core", "dbt", "f", "s")])
    done = subprocess.run([sys.executable, "-c", _READ, data.hex()], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]
