"""Commands are carried out on a broker, and what it does is judged.

A run (`run.py`) carries out the scenarios, then a random search that looks at a plan of its own and never at the
target: equal seeds make equal commands. Several processes may carry out its sequences (`workers.py`); results are
taken in one order all the same. New failures are shrunk at the end, those first that do the worst to an application
(`model.promises.severity`), and get a program that shows them. Then a fresh connection must be served, and what the
run made be gone (`targets.brokers.health`). All is told as events (`verdicts/events.py`); reports and exit codes are
made from the result. Two targets are compared by the traces of the same commands, both judged by the first one's
dialect (`upgrade.py`).

Its folders, each of which may import those before it: `traces`, `recording`, `language`, `verdicts`, `session`,
`scenarios`, `search`, `failures`, `profile`, `soak`, `explore`.
"""
