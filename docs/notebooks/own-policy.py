# %% [markdown]
# # A policy of your own, in a notebook
#
# A policy in Python is a class. It starts from the rules of a shipped policy, `cfs` here, and changes what it wants.
# This one gives the big cores to the threads that gain most from them.

# %%
import ampsched


class FastestFirst(ampsched.Policy):
    """The threads that gain most use the big cores."""

    base = "cfs"  # who runs next, and how long, is decided as CFS does
    epoch_ms = 10

    def epoch(self, view: ampsched.View, plan: ampsched.Plan) -> None:
        """Each 10 ms: sort threads by what they gain, and say which cores they may use."""
        threads = sorted(view.runnable(), key=lambda thread: (-view.speedup(thread), thread))
        big = self.topology.big_cores()
        for position, thread in enumerate(threads):
            plan.allow(thread, big if position < len(big) else self.all_cores())


# %% [markdown]
# Does it pay? Compare it with what it started from, and with shipped policies:

# %%
result = ampsched.compare("2B2S", "sync-2", ["cfs", FastestFirst, "wash", "colab"], repeat=3)
result

# %% [markdown]
# What does it do? Ask why a thread ran where it did:

# %%
import textwrap

for line in ampsched.explain("2B2S", "sync-2", FastestFirst, thread=0, at_ms=20, window_ms=1).lines():
    print(textwrap.fill(line, 100, subsequent_indent=" " * 20))

# %% [markdown]
# When it is good: [put it into a file](../howto/policy-in-python.md), and run it from the command line.
