"""What a broker does with each input, by the classes of 0-9-1, and what RabbitMQ adds to them.

Chapters share `common`, and offer steps at which extensions take part: `model.rules.table` lists who does.
"""
