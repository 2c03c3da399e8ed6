"""Real chips with unequal cores: their machine files from public data, and how well those reproduce measurements."""
