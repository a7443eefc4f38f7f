"""The results that `hk.heckman` and the linear classifier return."""
