"""Logistic regression: log-odds as probabilities, and the weights that explain labels best."""

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

_STEPS = 50
_SMALL = 1e-8  # a step that changes no weight by more ends the search


def logistic(log_odds: Numbers) -> Numbers:
    """Log-odds as probabilities."""
    return 1 / (1 + np.exp(-np.clip(log_odds, -50, 50)))


def fit_logistic(design: Numbers, labels: Numbers, penalty: Numbers, shares: Numbers) -> Numbers:
    """The weights of each column of `design` (rows, columns), by Newton's method.

    `labels` are 0 or 1, `penalty` is that on the square of each weight, and `shares` say how much each row counts.
    """
    weights = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        p = logistic(design @ weights)
        gradient = design.T @ (shares * (p - labels)) + penalty * weights
        curvature = design.T @ (design * (shares * p * (1 - p))[:, None]) + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        weights = weights - step
        if np.abs(step).max() < _SMALL:
            break
    return weights


def area_under_curve(probabilities: Numbers, labels: Numbers) -> float:
    """The share of (right, wrong) couples that are in order; ties count half."""
    right, wrong = np.sort(probabilities[labels == 1]), np.sort(probabilities[labels == 0])
    if not len(right) or not len(wrong):
        return float("nan")
    below = np.searchsorted(wrong, right, side="left") + np.searchsorted(wrong, right, side="right")
    return float(below.sum() / 2 / len(right) / len(wrong))
