"""Traces: what went over the wire, row by row, as JSON Lines or Parquet."""
