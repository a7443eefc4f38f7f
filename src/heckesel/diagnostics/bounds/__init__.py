"""Bounds that need no model: worst case, trimming, follow-up, monotone instruments, intervals."""
