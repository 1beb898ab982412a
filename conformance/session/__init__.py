"""One sequence of commands against one broker: sending, receiving, waiting until the broker is quiet."""
