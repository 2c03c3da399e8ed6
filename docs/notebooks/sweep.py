# %% [markdown]
# # A sweep, in a notebook
#
# Which value of a parameter is best, and does it stay the best on another machine? A sweep simulates every combination.
# Results are kept in a folder, if you name one; run the cell again with more values, and only those are simulated.

# %%
import polars as pl

import ampsched

found = ampsched.sweep(
    ["2B2S", "2B4S"], ["sync-1", "sync-2"], ["linux", "colab:decay=0.5..1.0:6", "max-fair"], repeat=3
)
found.ranking("h_antt").select("policy", "h_antt", "h_antt_change", "h_antt_change_low", "h_antt_change_high")

# %% [markdown]
# Changes are against the first policy, paired by seed, with 95 % intervals. Who is best on each machine?

# %%
found.best("h_antt").select("machine", "workload", "policy", "h_antt", "h_antt_change")

# %% [markdown]
# Turnaround and fairness are two aims. No other policy beats these in both:

# %%
found.pareto("h_antt", "unfairness").select("machine", "workload", "policy", "h_antt", "unfairness")

# %% [markdown]
# One row per simulation is in `found.frame`. How do results spread along the parameter?

# %%
found.frame.drop_nulls("colab:decay").group_by("machine", "colab:decay").agg(
    pl.len().alias("simulations"), pl.col("h_antt").mean()
).sort("machine", "colab:decay")
