"""Published selection fits, held against a likelihood that finds every maximum.

`python -m reproduction.audit` fits each again and writes `results/audit.json`.
"""
