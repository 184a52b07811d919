"""Plan text, as ``EXPLAIN FORMATTED`` and event logs print it: ``tree`` takes it apart, ``expressions`` reads
Catalyst's notation, ``operators`` and ``writes`` say what it means, ``read`` puts them together.
"""
