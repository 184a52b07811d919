"""Policies: classes of data, where they may flow, and who says otherwise. Data in, data out; see docs/policies.md."""
