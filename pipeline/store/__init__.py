"""The store: recordings of any number of runs, and what they were judged to be, as Parquet (docs/pipeline.md)."""
