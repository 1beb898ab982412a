"""Commands: how they are written, read and printed, and the files they come in."""
