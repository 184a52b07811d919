"""Record-level provenance: what its capture costs a Spark job, and what a trace costs afterwards.

Source of the workloads: Interlandi et al., "Titian: Data Provenance Support in Spark", PVLDB 9(3), 2015, section 6.
"""
