"""Classic estimators: arrays in, numbers out. The doors to them are in `heckesel.estimators`."""
