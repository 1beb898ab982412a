"""The judge: which states of the model fit what was seen."""
