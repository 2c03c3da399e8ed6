"""Recorded programs beside the programs themselves: how good replays, predictions and lifted models are."""
