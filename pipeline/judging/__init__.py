"""Judging the recordings of a store, in this process or on Spark."""
