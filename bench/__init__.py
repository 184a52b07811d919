"""Generators and benchmark suites: ``python -m bench`` regenerates docs/benchmarks.md. Imports govtool, never the other way."""
