"""Packages and macros that are understood here.

dbt's own macros are all here, as no package holds them. Of other packages there are those that the projects measured in
``docs/benchmarks.md`` depend on; any other macro is a diagnostic that names it, its package and ``dbt deps``.
"""

from __future__ import annotations

from collections.abc import Mapping

from govtool.capture.sql.templates.packages import crossdb, fivetran, utils
from govtool.capture.sql.templates.packages.crossdb import Macro

PACKAGES: Mapping[str, Mapping[str, Macro]] = {
    "dbt": crossdb.MACROS,
    "dbt_utils": utils.MACROS,
    "fivetran_utils": fivetran.MACROS,
}
"""Macros by package and name."""

QUERYING_MACROS: Mapping[str, frozenset[str]] = {
    "dbt_utils": utils.QUERYING_MACROS,
    "fivetran_utils": fivetran.QUERYING_MACROS,
}
"""Macros that ask the warehouse, by package: what is here goes before the package on disk."""
