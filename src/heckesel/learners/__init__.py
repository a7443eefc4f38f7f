"""Learners of E[y | x, s = 1]: built in, or any scikit-learn regressor."""
