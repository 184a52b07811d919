"""What a live session wrote down of its executions (``govtool.spark.live``): ``spool`` reads it, ``actions`` says which
executions belong together, ``commands`` and ``definitions`` what they wrote and changed, ``executions`` and ``runs``
make derivations and runs of it.
"""
