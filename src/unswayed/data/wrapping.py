"""A user's own examples as a data set."""
