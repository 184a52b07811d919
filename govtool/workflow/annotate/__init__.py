"""Annotation of queries: each row of a plan with the provenance graph of its existence and of its values.

One evaluator of the plan form: a table an operator in the executor, ids of nodes as columns, edges as arrays; nothing
is done for a single row. :mod:`~govtool.workflow.annotate.circuit` is the graph in blocks, which
:mod:`~govtool.workflow.semirings` evaluates. Source: the specification of fine-grained provenance, section 2.
"""
