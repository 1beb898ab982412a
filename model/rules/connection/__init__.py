"""Class connection: the handshake, frames and contents, blocking, closing."""
