"""Workflow provenance: graphs of module invocations and tuples, and the questions they answer."""
