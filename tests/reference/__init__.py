"""The reference that record-level provenance is held to: N[X] with monus, δ and aggregates as semimodules, by brute force.

Written from the specification of fine-grained provenance alone, for small data, with no code of govtool. Three files:
``polynomial`` (annotations and values), ``algebra`` (operators over lists of annotated rows), ``generate`` (random plans
and data, each written as SQL text, too).
"""
