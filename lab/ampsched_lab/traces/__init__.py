"""Traces of real chips, and what policies would have done with the same work on the same chip."""
