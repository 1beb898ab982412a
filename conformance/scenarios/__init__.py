"""The scenarios: command files by area, and which of them a target can carry out."""
