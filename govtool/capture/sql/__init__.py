"""Readers of SQL: scripts to statements, statements to derivations.

``extract`` is the public face, ``files`` reads scripts. What they go through, in order: ``templates`` renders,
``scripts`` splits and parses (``syntax`` has the tokens and classes of trees), ``resolve`` finds what names mean in a
batch, ``walk`` reads one statement, ``folding`` makes derivations of what a script's statements leave behind.
``memos`` keep outcomes for the next extraction; ``schemas`` and ``properties`` read what is stated of columns.
"""
