"""Parts of methods, one per file: their samples, candidates, first steps and graphs."""
