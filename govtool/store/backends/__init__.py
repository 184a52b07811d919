"""Places that hold a store's bytes: local disk and object stores, their clocks and their failures."""
