"""Claims of papers as data, and the engine that judges them.

An experiment states its paper's claims in claims.toml (`reading`). A claim names one of the experiment's
measurements, functions from results to numbers (`measured`), and how its number compares with the paper's
(`comparisons`); `judging` puts the two together, and `tables` shows what comes out.
"""
