"""Recorded traces with the verdicts that they have: a net that shows every change of a verdict, without any broker."""
