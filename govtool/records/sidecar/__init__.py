"""Key sidecars: for the files of an input, which rows may have given values in given columns.

A sidecar holds a 4-byte hash of the key of every row, sorted, each with its row. It is made once for a file and a set
of columns, whatever run reads it, and lies in the cache, never in a store. It only says where to look: every row that
it points at is read, and compared as the plan compares it.
"""
