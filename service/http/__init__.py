"""HTTP for every kind of model: limits, errors, answers, status, and `/v1/online`."""
