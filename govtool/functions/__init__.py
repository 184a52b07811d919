"""Facts about the functions of SQL and Spark, in one table that every reader and the policies share.

`table` is the data: to teach govtool a function, add a line there. `facts` reads it into sets. `names` matches the
names that one function has.
"""
