"""What people and tools read of a run: listeners of its events, and pure functions of its result.

Several runs are compared by their `report.json` (`comparison.py`).
"""
