"""What a live session wrote down of its executions (``govtool.spark.live``), as runs and derivations."""
