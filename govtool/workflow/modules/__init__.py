"""Definitions of modules and workflows, their validation, and the order in which a workflow runs.

Pure data and functions: nothing here imports an engine. The model is that of Amsterdamer et al., "Putting Lipstick on
Pig" (PVLDB 5(4), 2012), Definitions 2.1 to 2.3.
"""
