"""One thread: the networks of the tests are small, and threads that wait for each other on shared
cores slow them several times over."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
