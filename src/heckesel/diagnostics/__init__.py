"""Whether the data support a correction: instruments, profile likelihood, verdict, sensitivity.

`data_verdict` needs only the data, `fit_verdict` a linear fit; `verdict` contains the verdicts and
sentences that both use. Evidence consists of numbers: `row_evidence` computes those that need no
error model, `model_evidence` tests the error model, and `caveats` describes both in words. New
evidence is a key of a dictionary in one of these, with a line in `verdict.LINES` that displays it.
"""
