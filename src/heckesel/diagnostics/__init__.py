"""Can the data carry the correction? Evidence and a verdict in plain words."""
