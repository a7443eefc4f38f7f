"""The classical estimators: linear in x, by two steps or by maximum likelihood, with inference."""
