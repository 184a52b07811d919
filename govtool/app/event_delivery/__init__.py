"""Events of OpenLineage on their way to other programs."""
