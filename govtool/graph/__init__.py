"""The graph as flat arrays: fold and build from derivations, a mapped index, walks. Pure: no input, no output."""
