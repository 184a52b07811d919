"""How tables, trees and text are laid out for a terminal, a pipe or Markdown."""
