"""Traffic of others as traces: a proxy that any client can be pointed at, and what makes rows of octets."""
