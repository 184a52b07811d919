"""Pictures of answers: DOT, Mermaid, SVG."""
