"""The random search: which commands are made, by theme."""
