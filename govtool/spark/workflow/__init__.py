"""DataFrame operators of workflows: nested data as Pig has it."""
