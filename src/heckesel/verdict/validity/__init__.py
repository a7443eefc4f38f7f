"""Tests of the exclusion restriction: inequalities, overidentification, and their power."""
