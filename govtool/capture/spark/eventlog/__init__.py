"""Event logs of past Spark applications: ``files`` finds them, ``read`` and ``lines`` read them as a stream,
``application`` follows what the events say, ``executions`` and ``runs`` make derivations and runs of it, ``gathered``
puts together what all of them say.
"""
