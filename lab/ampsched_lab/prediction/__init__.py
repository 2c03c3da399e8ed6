"""How well speed-ups can be predicted, and what errors cost."""
