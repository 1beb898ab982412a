"""Brokers that the suite starts or finds: Docker, processes, the embedded one, and what their operator can do."""
