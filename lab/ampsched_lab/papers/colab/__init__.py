"""COLAB (CGO 2020), reproduced in simulation."""
