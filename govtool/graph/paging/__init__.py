"""An index cut into pages, of which a question reads few."""
