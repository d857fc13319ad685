"""Scorers that learn nothing of their own: how far the features of a ready network lie from those of the training set."""
