"""Recordings in large numbers. `docs/pipeline.md` describes the formats.

A store (`store`) holds them in parts of whole sequences, so that judging needs no shuffle: a task of Spark judges parts
by the function of the live run, and writes the judgements itself (`judging`). Tables are made of these by Spark SQL
(`tables.py`). Campaigns spread the rounds of a search (`campaign.py`).
"""
