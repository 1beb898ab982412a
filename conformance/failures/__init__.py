"""What becomes of a failure: shrinking, grouping, and a program that shows it without this suite."""
