"""Octets: frames and methods to and from the wire."""
