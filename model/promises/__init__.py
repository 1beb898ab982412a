"""The requirements and the dialects: what is promised, by whom, and where that is written."""
