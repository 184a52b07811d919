"""Readers of what Spark executions say of themselves: event logs, plan text, the analyzed plan of a live session.

``plan`` has the terms in which a plan is told, ``flow`` what follows for columns, ``executed`` what an action came to.
``plantext`` and ``analyzed`` read the two forms of plans; ``eventlog`` and ``live`` read where they are written down,
and with which figures.
"""
