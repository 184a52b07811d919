"""Event logs of past Spark applications: ``files`` finds them, ``codecs`` and ``lines`` read them as a stream,
``application`` follows what the events say, ``executions`` makes runs and derivations of it.
"""
