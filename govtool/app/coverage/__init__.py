"""How much of the evidence was understood, and what was not."""
