"""Record-level provenance of RDD programs, with the interface of Titian (Interlandi et al., PVLDB 9(3), 2015).

* ``context``, ``lineage_rdd``: what a program uses: tracked RDDs that wrap Spark's own
* ``operators``, ``log``: the log of operators and functions, all that a job writes down
* ``worker``: functions that run in tasks, shipped by value
* ``conditions``, ``rows``, ``scope``: records with ids, selected without running more than the selection needs
* ``back``, ``forward``: one boundary back, one boundary on
* ``position``: what ``get_lineage()`` returns
* ``checks``, ``sources``, ``replay``: re-runs compared with what was recorded; input files; the trace run again
* ``saved``, ``functions``: the log as JSON, and its functions found again in the user's files
"""
