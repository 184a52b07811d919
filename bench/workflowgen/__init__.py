"""WorkflowGen: the two families of workflows of "Putting Lipstick on Pig" (PVLDB 5(4), 2012, section 5), in three arms.

    python -m bench.workflowgen car                                  measure: by hand, untracked, tracked
    python -m bench.workflowgen arctic --topology dense --fan 6
    python -m bench.workflowgen figures --pieces 1                   the paper's figures, a piece at a time
    python -m bench.workflowgen unknown                              rows that deletions leave unknown
    python -m bench.workflowgen car --spec F.json --delete F.jsonl   run a file, and deletions of its rows

The definitions are those of the specification: a fixed price function, ties impossible, outputs checked equal.
"""
