"""What a broker may send now, what it must send, and what is wrong with a frame that it may not send."""
