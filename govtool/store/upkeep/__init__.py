"""A store kept in order: checked, compacted, copied, collected, made to forget."""
