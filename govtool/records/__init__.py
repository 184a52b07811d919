"""Record-level provenance: exact plans, their rebuild, and traces from results to rows and back."""
