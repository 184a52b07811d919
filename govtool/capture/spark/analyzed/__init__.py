"""Catalyst's analyzed plan, as a live session writes it down (``govtool.spark.live.plans.catalyst``), as a `plan.Node`.

The plan comes as nodes in preorder. What ``toJSON()`` leaves out is under ``leaves`` and ``command``.
"""
