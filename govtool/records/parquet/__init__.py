"""Rows of a Parquet file by their places: only the pages that hold them are read, by the file's page index.

No engine that runs here reads by that index. So ``cut`` copies the pages, as they are, into a small file with a footer
of its own, and the engine reads that.

Source: Apache Parquet, ``parquet.thrift`` and "Page Index" (PageIndex.md).
"""
