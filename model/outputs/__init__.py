"""What a broker sends, one file for each kind: is it right in this state, and what is the state after it?

`model.observation.observe` is the way in.
"""
