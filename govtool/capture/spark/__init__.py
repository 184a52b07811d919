"""Readers of what Spark executions say of themselves: event logs, plan text, the analyzed plan of a live session."""
