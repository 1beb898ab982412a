"""What a broker does with each input, by the classes of 0-9-1, and what RabbitMQ adds to them."""
