"""What the operator of a broker does to it from outside."""
