"""Speed against live peers, measured side by side in one run: `make bench`."""
