"""My policy: the threads that gain most from big cores run there.

ampsched compare --machine 2B2S --workload sync-2 --policy cfs,my_policy.py
"""

import ampsched


class MyPolicy(ampsched.Policy):
    """As many threads as there are big cores may run only there: those that gain most; the others may run anywhere."""

    name = "my-policy"
    base = "cfs"  # who runs when, and for how long, is decided as CFS does
    epoch_ms = 10.0
    share = 1.0
    """Of the big cores, this share is for the threads that gain most."""

    def epoch(self, view: ampsched.View, plan: ampsched.Plan) -> None:
        """Decides anew who has to use the big cores."""
        big = self.topology.big_cores()
        # Equal inputs must give equal decisions: ties go to the lower number.
        threads = sorted(view.runnable(), key=lambda thread: (-view.speedup(thread), thread))
        for position, thread in enumerate(threads):
            plan.allow(thread, big if position < self.share * len(big) else self.all_cores())
