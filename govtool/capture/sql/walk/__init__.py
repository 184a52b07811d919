"""One pass over the tree of a statement: from written names to the base columns behind every output.

A walk is functions over one context: ``f(walk, node, scope, env)`` finds what a node contributes, where ``walk`` is
what was found so far (``context``), ``scope`` the FROM items in sight and ``env`` the CTEs in sight (``scope``).
``statements.writes_of`` walks a statement, and ``batch`` takes from the context what it has found.

Statements hold queries, queries hold FROM items and expressions, and these hold queries again. Imports go one way all
the same: where it depends on the class of a node which function walks it, the function is looked up by that class
(``dispatch``). The module that looks up defines an empty table: ``query.QUERIES``, ``queries.sources.ITEMS``,
``expressions.expression.HANDLERS``, ``expressions.columns.UNNAMED``. A module above it lists its functions in a table
of the same name, at its end. ``statements`` imports them all and fills the tables in one place, which shows what there
is; and as every walk begins there, no walk begins without it.

Read in this order:

* what is collected: ``dependencies``, ``writes``; what names mean: ``relation``, ``scope``; what a walk gets and holds:
  ``state``, ``context``;
* ``expressions/``: ``rows``, ``variables``, ``naming``, ``pseudo_columns``, ``written_paths``, ``columns``; then
  ``expression``, ``stars``, ``shapes``, ``choices``, ``calls``, ``row_makers``, ``fields``;
* ``query``, then ``queries/``: ``common_tables``, ``sources``, ``outer_joins`` (what rows need), ``using``,
  ``pivots``, ``placing``, ``table_functions``, ``unnest``, ``values``, ``from_items``, ``clauses``, ``projections``,
  ``selects``, ``set_operations``;
* ``writing/``: ``recording``, ``create``, ``targets``, ``set_clause``, ``modify``, ``constraints``, ``insert``,
  ``merge``, ``transfer``, ``alter``, ``assignments``, ``unread``, ``returning``, ``output_into``, ``conditions``;
  then ``statements``;
* ``places/``: where in the text an edge comes from, once the walk is over: ``origins``, ``spans``, ``edge_places``.
"""
