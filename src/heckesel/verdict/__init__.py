"""Whether the data support a correction: the verdict, strength and validity of instruments, and
checks of a fit.

Evidence consists of numbers in one flat dictionary, and `identify.conclude` turns it into the
verdict. New evidence is a key, a rule in `conclude`, and a line in `identify.LINES`.
"""
