"""Faulty variants of the embedded broker, one defect each. They measure the suite."""
