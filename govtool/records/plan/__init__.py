"""The exact plan of a query: operators, typed expressions and types, as data.

A plan is a tree of :mod:`nodes <govtool.records.plan.nodes>`, one node an operator. A node holds terms
(:mod:`expressions <govtool.records.plan.expressions>`); a term refers to a column only by its attribute's id, which is
unique within a plan. Names are for people and for the final schema. Everything is a frozen dataclass without behaviour
beyond traversal (:mod:`tree <govtool.records.plan.tree>`); :mod:`codec <govtool.records.plan.codec>` writes and reads
it as JSON.
"""
