"""Policy files: their text with lines, their form, and the one checked set that they make."""
