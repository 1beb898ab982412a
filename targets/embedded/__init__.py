"""The model served over TCP."""
