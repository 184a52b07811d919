"""Data on an object store is known by its ETags, without being read."""

from __future__ import annotations

import pytest

from govtool.app.datasets.snapshot import take_snapshot
from govtool.app.datasets.verify import verify_data
from govtool.errors import StoreError
from govtool.store import Store
from govtool.store.backends.location import open_objects


@pytest.mark.parametrize("server", ["moto", "seaweedfs"])
def test_data_on_a_server(use_server, server):
    data = open_objects(use_server(server))
    data.put("day=1/part-0.parquet", b"a")
    data.put("_SUCCESS", b"")
    store = Store.init(use_server(server))
    result, record = take_snapshot(store, data.uri, run="load")
    assert (record.identity.kind, record.identity.files, record.identity.size) == ("listing", 1, 1)

    def state():
        return verify_data(store, result.commit, data.uri, None, None).state

    assert state() == "match"
    data.put("day=1/part-0.parquet", b"b")
    assert state() == "data-changed"
    data.put("day=1/part-0.parquet", b"a")
    assert state() == "match"
    data.delete("day=1/part-0.parquet")
    assert state() == "data-missing"


def test_a_bucket_that_is_gone_is_no_missing_data(use_server):
    use_server("moto")
    store = Store.init("memory://")
    with pytest.raises(StoreError) as caught:
        take_snapshot(store, "s3://no-such-bucket/data", run="load")
    assert caught.value.code == "store.missing-bucket"
