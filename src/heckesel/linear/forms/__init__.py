"""Error models other than the normal: t, shape and copulas, and the search for their maxima."""
