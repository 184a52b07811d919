"""What a change or a deletion does downstream: verdicts, impact, what-if, grounded support."""
