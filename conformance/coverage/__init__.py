"""Situations covered: in which situations a command was sent, of those that a broker may tell apart.

A *cell* is a row and a column of one table. The rows are methods with their arguments (`rows.py`), the columns are
what the lawful state of the model is at the moment that the command is sent, in groups (`columns.py`). `cells.py` reads
a cell from a state, `reading.py` all of a trace, and `visits.py` counts them. The search prefers cells that were seldom
seen (`conformance.search.seldom`).
"""
