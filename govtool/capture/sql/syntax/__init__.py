"""SQL as text, tokens and trees: sqlglot's lexer and classes, literals, fingerprints, redaction."""
