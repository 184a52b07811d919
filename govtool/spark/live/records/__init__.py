"""Record-level provenance inside a job: whole plans, and positions of rows by plans that carry ids."""
