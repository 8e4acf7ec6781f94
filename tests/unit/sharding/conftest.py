"""Property tests here run on shared, slow machines: an example that takes long is not a failure."""

from hypothesis import settings

settings.register_profile("sharding", deadline=None, max_examples=50)
settings.load_profile("sharding")
