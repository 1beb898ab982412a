"""Class basic: qos, consume, cancel, publish, get, and the settlement of deliveries."""
