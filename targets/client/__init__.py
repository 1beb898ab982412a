"""The frame-level client with which the suite speaks to a broker."""
