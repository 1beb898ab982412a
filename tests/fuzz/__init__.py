"""Recordings of the corpus with something wrong in them, which the judge must survive (`python -m tests.fuzz`)."""
