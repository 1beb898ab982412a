"""Class channel: open, flow, close."""
