"""What RabbitMQ adds to 0-9-1."""
