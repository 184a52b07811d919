"""W3C PROV documents: entities are versions of datasets, activities are runs, agents are users and software."""
