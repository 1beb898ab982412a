"""What judging a sequence gives, and what many sequences add up to."""
