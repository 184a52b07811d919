"""One pass over the tree of a statement: from written names to the base columns behind every output.

Read in this order: ``dependencies`` (what is collected), ``relation`` and ``scope`` (what names mean), ``state``
(what a walk holds), then the parts of the walk, each a class on top of the one before: ``columns``, ``expressions``,
``choices``, ``calls``, ``fields``, ``shapes``, ``sources``, ``pivots``, ``projections``, ``query``, ``set_operations``,
and the statements on top: ``writes``, ``create``, ``insert``, ``modify``, ``transfer``, ``statements``.
"""
