"""Seeds every framework as it is imported, so that two runs of a script that sets no seed can be compared."""

import random

import wrapt

random.seed(0)
wrapt.register_post_import_hook(lambda torch: torch.manual_seed(0), "torch")
wrapt.register_post_import_hook(lambda numpy: numpy.random.seed(0), "numpy")
wrapt.register_post_import_hook(lambda tensorflow: tensorflow.random.set_seed(0), "tensorflow")
