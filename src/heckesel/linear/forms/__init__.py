"""Error models other than the normal: t errors and copulas, and the search for their maxima."""
