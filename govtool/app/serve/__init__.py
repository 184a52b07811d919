"""Receives OpenLineage events over HTTP and commits them in batches: what ``OPENLINEAGE_URL`` may point at.

An event is answered (``endpoint``) once it is in the ``spool``, a file beside nothing of the user's, synced to disk; a
``committer`` turns the spool into commits every few seconds. Killed at any moment, the next start commits what the
spool still holds, and events that were committed already change nothing.
"""
