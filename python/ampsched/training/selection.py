"""Which counters a model reads: selection by principal components, within what the PMU counts at once."""

from collections.abc import Sequence

import numpy as np

from ampsched.training.features import Feature, events
from ampsched.training.pmu import Pmu
from ampsched.training.rows import Array

# Share of the variance that the kept components explain: the default of Weka's PrincipalComponents, the tool that
# COLAB names for its selection (CGO 2020, section 4.1).
VARIANCE_SHARE = 0.95


def select(features: Sequence[Feature], values: Array, target: Array, k: int, pmu: Pmu) -> list[int]:
    """Places of at most `k` features whose events fit into the PMU together.

    The target is regressed on the leading principal components of the standardised features; carried back, the regression
    has a weight per feature. The feature of the least weight is dropped and all is computed anew, until enough are gone.
    The papers do not say how a counter is chosen from components; this is a reconstruction.
    """
    chosen = [place for place in range(len(features)) if np.ptp(values[:, place]) > 0]
    while len(chosen) > k or pmu.running_share(events([features[place] for place in chosen])) < 1:
        if len(chosen) <= 1:
            break
        weights = np.abs(component_weights(values[:, chosen], target))
        chosen.pop(int(np.argmin(weights)))
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
