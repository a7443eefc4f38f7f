"""Whether the data support a correction: instruments, profile likelihood, verdict, sensitivity.

`data_verdict` needs the data alone, `fit_verdict` a linear fit; `verdict` has what both say.
Evidence is numbers: `row_evidence` without an error model and `model_evidence` against one, which
`caveats` turns into words. New evidence is a key of a dictionary there, and a line of LINES in
`verdict` shows it.
"""
