"""Class exchange: declare and delete."""
