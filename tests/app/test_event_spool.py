"""The folder of events that wait for a commit."""

from __future__ import annotations

from govtool.app.serve.event_spool import EventSpool


def test_files_of_the_user_are_left_alone(tmp_path):
    own = tmp_path / "events.jsonl"
    own.write_bytes(b"{}\n{")
    spool = EventSpool(tmp_path)
    spool.put([b"{}"])
    assert [file.name for file in spool.take()] == ["000000000001.jsonl"]
    spool.close()
    assert own.read_bytes() == b"{}\n{"


def test_events_that_were_set_aside_keep_their_number(tmp_path):
    (tmp_path / "000000000007.failed").write_bytes(b"{}\n")
    spool = EventSpool(tmp_path)
    spool.put([b"{}"])
    assert [file.name for file in spool.take()] == ["000000000008.jsonl"]
    spool.close()
