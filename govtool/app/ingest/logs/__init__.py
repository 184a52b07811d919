"""Query logs into the graph: ``govtool ingest log``.

``ingest`` is the whole of it; ``steps`` are the functions that every engine calls, on records, scripts and parts
(``parts``); ``local`` runs them in processes (``pool``) that keep their work on disk until the commit (``step_files``).
"""
