"""`python -m amqpspec`: the command line."""

from __future__ import annotations

import sys

from amqpspec.command_line import main

if __name__ == "__main__":
    sys.exit(main())
