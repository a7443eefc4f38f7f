"""Results of linear models as tables: tidy frames, hypotheses in words, and fits side by side."""
