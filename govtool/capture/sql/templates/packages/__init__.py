"""Results of much used macros, written from their documentation: dbt's own and those of packages.

A package that is on disk is read; these stand in for one that is not, and where a macro would ask the warehouse.
``known`` lists them.
"""
