"""The reader for those in a hurry says what the store says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from govtool.errors import StoreError
from govtool.store import Store
from govtool.store.quick import open_reader


def run(code):
    command = [sys.executable, "-c", code]
    root = Path(__file__).parents[2]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


def test_the_same_head_fragments_and_refs(store, uri, say):
    assert open_reader(uri).head() is None
    for n in range(70):
        say(f"s{n}", b"%d" % n)
    reader = open_reader(uri)
    head = store.head()
    assert reader.head() == head
    assert reader.store_id == store.store_id
    assert reader.fragments(head) == store.fragments(head)
    assert [reader.read(ref) for ref in reader.fragments(head)] == [store.read(ref) for ref in store.fragments(head)]
    assert [c.id for c in reader.log()] == [c.id for c in store.log()]
    for ref in ("HEAD~5", "3", head.id[:10], "2999-01-01"):
        assert reader.resolve(ref) == store.resolve(ref)
    store.objects.delete("hint/main")
    assert open_reader(uri).head() == head


def test_the_same_errors(uri):
    with pytest.raises(StoreError) as caught:
        open_reader(uri)
    assert caught.value.code == "store.missing"


def test_it_needs_the_standard_library_alone(tmp_path):
    uri = str(tmp_path / "store")
    Store.init(uri)
    code = (
        "import sys; from govtool.store.quick import open_reader\n"
        f"assert open_reader({uri!r}).head() is None\n"
        "heavy = {'obstore', 'numpy', 'pyarrow', 'concurrent', 'asyncio'}\n"
        "print([name for name in sys.modules if name.split('.')[0] in heavy])"
    )
    assert run(code) == "[]"


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import sys, govtool.store\n"
        "print([name for name in sys.modules if name.startswith(('govtool.store.', 'obstore', 'json'))])"
    )
    assert run(code) == "[]"
