"""Class queue: declare, bind, unbind, purge, delete, and the arguments of a queue."""
