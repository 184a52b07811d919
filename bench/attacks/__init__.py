"""Attacks on a store and what came of them; ``python -m bench.attacks [PART…]`` writes docs/store-attacks.md.

Parts: kills, forgetting, truncations, damages, flips, faults, writers, causal, requests, fuzz, lengths.
"""
