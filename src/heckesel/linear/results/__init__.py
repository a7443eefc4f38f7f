"""The results that `hk.heckman`, `hk.probit` and the linear classifier return.

`assemble` and its variants fit and put a result together. Its classes hold numbers; what they
answer is computed by functions in the file of the question: tests and intervals, averages,
predictions, the summary.
"""
