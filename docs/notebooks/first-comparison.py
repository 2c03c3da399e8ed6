# %% [markdown]
# # A first comparison, in a notebook
#
# Which policy is best for a mix of two programs on a phone-like machine? Install `ampsched` and run the cells.

# %%
import ampsched

result = ampsched.compare("2B2S", "sync-2", ["linux", "wash", "colab"], repeat=5)
result

# %% [markdown]
# The machine:

# %%
ampsched.Catalog.shipped().machine("2B2S")

# %% [markdown]
# Results are data frames. How long is each program slowed down, on average?

# %%
apps = result.apps_to_polars()
apps.pivot("policy", index="app", values="h_ntt", aggregate_function="mean")

# %% [markdown]
# Why is one policy better? Look at who had which core:

# %%
ampsched.timeline("2B2S", "sync-2", "colab")

# %%
ampsched.timeline("2B2S", "sync-2", "linux")

# %% [markdown]
# The same as one page that you can send to others, with figures and the timelines of the best and the worst run:
# `ampsched compare -m 2B2S -w sync-2 --repeat 5 --html report.html`.
