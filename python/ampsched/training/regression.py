"""Regressions, and how they are written into a model file."""

from typing import Any, Literal

from ampsched.training import require_sklearn
from ampsched.training.rows import Array

Kind = Literal["linear", "costs", "ridge", "trees"]
# A small ensemble (our choice): as many trees as inference walks through in 100 ns, and with some dozens of rows deeper
# ones only learn them by heart.
TREES, TREE_DEPTH, TREE_RATE = 20, 2, 0.2


def fit(kind: Literal["linear", "trees"], values: Array, target: Array) -> Any:  # noqa: ANN401  # scikit-learn has no types
    """A fitted regression of standardised features."""
    require_sklearn()
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.linear_model import LinearRegression

    match kind:
        case "linear":
            model = LinearRegression()
        case "trees":
            model = GradientBoostingRegressor(
                n_estimators=TREES, max_depth=TREE_DEPTH, learning_rate=TREE_RATE, random_state=1
            )
    return model.fit(values, target)


def to_json(kind: Kind, model: Any) -> dict[str, Any]:  # noqa: ANN401  # scikit-learn has no types
    """The regression as a model file has it."""
    if kind != "trees":
        coefficients = [float(value) for value in model.coef_]
        return {"kind": "linear", "intercept": float(model.intercept_), "coefficients": coefficients}
    trees = [_tree_to_json(tree.tree_) for tree in model.estimators_[:, 0]]
    return {"kind": "trees", "intercept": float(model.init_.constant_[0, 0]), "trees": trees}


def _tree_to_json(tree: Any) -> list[dict[str, Any]]:  # noqa: ANN401  # scikit-learn has no types
    nodes: list[dict[str, Any]] = []
    for node in range(tree.node_count):
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left == right:
            nodes.append({"value": TREE_RATE * float(tree.value[node, 0, 0])})
        else:
            feature, threshold = int(tree.feature[node]), float(tree.threshold[node])
            nodes.append({"feature": feature, "threshold": threshold, "left": left, "right": right})
    return nodes
