"""One sequence of commands against one broker: sending, receiving, waiting until the broker is quiet.

Three parts can be replaced: what carries commands (`targets.client.carrier`), when the next one is sent (`pacing.py`),
and what is asked of the judge meanwhile (`model.judging.questions`).
"""
