"""What a broker chose where the text of 0-9-1 leaves a choice, and which extensions it has: its profile."""
