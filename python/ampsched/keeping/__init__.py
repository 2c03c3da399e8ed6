"""Keeping an advised setting without any scheduler of ours: what is written where, and how it is taken back."""
