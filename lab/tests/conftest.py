"""What several tests need: the product's own fixtures, which its folder of tests has."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("product_conftest", ROOT / "tests/python/conftest.py")
assert _spec is not None
assert _spec.loader is not None
_product = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = _product
_spec.loader.exec_module(_product)

Ampsched = _product.Ampsched
Finished = _product.Finished
ampsched_here = _product.ampsched_here
ampsched_process = _product.ampsched_process
command_path = _product.command_path
has = _product.has
