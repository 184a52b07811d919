"""Scripts to statements: split, control flow and routine bodies flattened, each parsed on its own, or rescued."""
