"""Does the product prove itself as it should? Its selftest and ``advise --check`` in exact virtual machines."""
