"""Measurements of the suite itself: `python -m benchmarks`. See README.md in this directory."""
