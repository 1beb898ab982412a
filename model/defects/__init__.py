"""Known wrong behaviour of brokers, one file a mechanism."""
