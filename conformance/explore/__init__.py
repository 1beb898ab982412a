"""The model itself is checked: every state that a small world can come to, whatever its broker chooses.

A world (`world.py`, the files of `worlds/`) says which queues and consumers there are, and which commands clients may
send how often. From its first state all others are reached, breadth first (`exploration.py`): by each command, by each
frame that the broker may send (`formable.py`), by what it does by itself (`steps.py`). The rules are those that judge
and serve; there is no second model. What must hold in every state and for every step is a small function with a
sentence (`properties.py`); states that compare as equal are held to permit the same (`sameness.py`). Paths are also
given to the judge, to the open world and to the embedded broker (`agreement.py`). What does not hold is told with the
shortest way to it, as a command file (`counterexample.py`).
"""
