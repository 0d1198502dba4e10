"""One thread: two that wait for each other at every small operation are slower."""

import torch

torch.set_num_threads(1)
