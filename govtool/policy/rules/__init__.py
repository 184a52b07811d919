"""Rules on a graph with classes: findings, waivers, baselines, rules in Python, and what lint says of them."""
