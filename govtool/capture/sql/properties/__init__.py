"""Properties that SQL declares beside its queries: tags, comments, masking policies, waivers."""
