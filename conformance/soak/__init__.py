"""A soak: publishers and consumers under load while faults come, and what becomes of every message.

`plan.py` says who takes part, `schedule.py` which faults come when; both follow from the seed. `mill.py` drives all
clients in one thread: publishers (`publisher.py`), consumers (`consumer.py`), and who empties the queues at the end
(`drainer.py`). Everything is written to one trace, each connection as a sequence of its own.

`judging.py` reads that trace while it grows, in a process of its own (`judge_process.py`): each connection is judged in
the open world, and `ledger.py` keeps account of every message across all of them, in one set of `books.py`: what is
published (`publishing.py`), taken (`taking.py`) and left at the end (`balance.py`). So the result (`result.py`) is a
function of the trace, and is found again whenever the trace is read.
"""
