"""Client libraries that carry commands in place of the suite's own client.

The library connects to a tap (`tap.py`), which passes all octets on and records them as frames. So the broker is judged
by what was on the wire, as ever, and nothing of it is hidden: barriers go through the library too. What the application
asks of the library, and what the library shows it, is a second stream, under a connection name of its own
(`application.py`); `conformance.verdicts.library` compares the two. What a library can say is data (`expressible.py`).
"""
