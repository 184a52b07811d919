"""Generators and benchmark suites: ``python -m bench`` makes docs/benchmarks.md. govtool never imports them."""
