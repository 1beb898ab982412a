"""The wire, and the brokers at its other end: what is tested, and what can stand in for it.

The embedded broker is the model behind a port: it sends the first of what is permitted. Each of its faults changes one
input, output or step.

Its folders, each of which may import those before it: `codec`, `client`, `embedded`, `faults`, `brokers`.
"""
