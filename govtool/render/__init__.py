"""Results to text: tables, JSON, CSV, Markdown, DOT, Mermaid. Knows results; reads and writes nothing."""
