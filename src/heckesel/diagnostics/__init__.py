"""Whether the data support a correction: instruments, profile likelihood, verdict, sensitivity.

Evidence is numbers: `evidence` needs the data alone, `row_evidence` and `model_evidence` those of a
fit. `verdict` and `model_verdict` say what follows from it; `fit_verdict` does both for a fit. New
evidence is a key of the dictionaries there, and a line of LINES in `verdict` shows it.
"""
