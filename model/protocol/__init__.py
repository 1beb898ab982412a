"""What goes over the wire, as values: methods, field values, patterns for them, errors, and how they are worded."""
