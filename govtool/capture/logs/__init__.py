"""Query logs of warehouses: one small reader a format, all to one ``QueryRecord``."""
