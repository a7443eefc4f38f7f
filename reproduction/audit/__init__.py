"""Published selection fits, compared with all maxima of their likelihoods.

`python -m reproduction.audit` fits each again and writes `results/audit.json`.
"""
