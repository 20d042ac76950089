"""Vectors, segments and graphs: what the ranks exchange."""
