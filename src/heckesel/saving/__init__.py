"""Fitted models as files that are safe to open.

`model_file` writes and reads bytes, `codec` turns objects into fields by the annotations of their
classes, and `..._layouts` add what annotations do not state. `saved_...` save the parts of an
estimator. A new kind of fit needs metadata on its fields (`heckesel.on_disk`) and, if they depend
on each other, a check.
"""
