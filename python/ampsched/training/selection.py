"""Which counters a model reads of those that the PMU counts at once: by principal components, or by errors."""

from collections.abc import Callable, Sequence

import numpy as np

from ampsched.training.features import Feature, events
from ampsched.training.pmu import Pmu
from ampsched.training.rows import Array

# Share of the variance that the kept components explain: the default of Weka's PrincipalComponents, the tool that
# COLAB names for its selection (CGO 2020, section 4.1).
VARIANCE_SHARE = 0.95
# Elimination begins with this many times the features that are wanted (our choice), the strongest by components: with
# more features than groups, the first steps would be decided by chance.
SHORTLIST = 3

# Error of each of some choices of features, equally many in each.
Error = Callable[[Sequence[Sequence[int]]], Array]
# Weights of the features at some places.
Weigh = Callable[[Sequence[int]], Array]


def eliminate(features: Sequence[Feature], values: Array, k: int, pmu: Pmu, weigh: Weigh) -> list[int]:
    """Places of at most `k` features that the PMU counts at once: again and again the one of least weight goes.

    Args:
        features: Those to choose from; those that never change go first.
        values: Rows x features.
        k: Most features.
        pmu: What counts them.
        weigh: Weights of the features at some places.
    """
    chosen = [place for place in range(len(features)) if np.ptp(values[:, place]) > 0]
    while len(chosen) > 1 and (len(chosen) > k or not fits(features, chosen, pmu)):
        chosen.pop(int(np.argmin(np.abs(weigh(chosen)))))
    return chosen


def select(features: Sequence[Feature], values: Array, target: Array, k: int, pmu: Pmu) -> list[int]:
    """Places of at most `k` features whose events fit into the PMU together, by principal components.

    The target is regressed on the leading principal components of the standardised features; carried back, the
    regression has a weight per feature. The feature of the least weight is dropped and all is computed anew, until
    enough are gone. The papers do not say how a counter is chosen from components; this is a reconstruction.
    """
    return eliminate(features, values, k, pmu, lambda chosen: component_weights(values[:, chosen], target))


def fits(features: Sequence[Feature], chosen: Sequence[int], pmu: Pmu) -> bool:
    """Whether the PMU counts all events of some features at once."""
    return pmu.running_share(events([features[place] for place in chosen])) == 1.0


def forward(features: Sequence[Feature], k: int, pmu: Pmu, error: Error) -> list[int]:
    """Places of at most `k` features that the PMU counts at once: the one that helps most is added until none helps."""
    chosen: list[int] = []
    least = np.inf
    while len(chosen) < k:
        others = [place for place in range(len(features)) if place not in chosen]
        choices = [[*chosen, place] for place in others if fits(features, [*chosen, place], pmu)]
        errors = error(choices) if choices else np.array([np.inf])
        if errors.min() >= least:
            break
        least, chosen = float(errors.min()), choices[int(np.argmin(errors))]
    return chosen


def backward(
    features: Sequence[Feature], shortlist: Sequence[int], k: int, pmu: Pmu, error: Error
) -> list[int]:
    """Places of at most `k` features that the PMU counts at once: again and again the one goes that is missed least."""
    chosen = list(shortlist)
    while len(chosen) > 1 and (len(chosen) > k or not fits(features, chosen, pmu)):
        choices = [[place for place in chosen if place != gone] for gone in chosen]
        chosen = choices[int(np.argmin(error(choices)))]
    return chosen


def component_weights(values: Array, target: Array) -> Array:
    """Weights of standardised features in a regression on their leading principal components."""
    centred = (values - values.mean(axis=0)) / values.std(axis=0)
    _, spread, loadings = np.linalg.svd(centred, full_matrices=False)
    explained = np.cumsum(spread**2) / np.sum(spread**2)
    kept = int(np.searchsorted(explained, VARIANCE_SHARE)) + 1
    scores = centred @ loadings[:kept].T
    coefficients, *_ = np.linalg.lstsq(scores, target - target.mean(), rcond=None)
    weights: Array = loadings[:kept].T @ coefficients
    return weights
