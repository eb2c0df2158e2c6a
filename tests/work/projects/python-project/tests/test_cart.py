import subprocess
import sys

import pytest
from shop.cart import Cart


def test_total():
    cart = Cart()
    cart.add("tea", 3, 2)
    cart.add("tea", 3)
    assert cart.total() == 9


def test_refuses_nothing():
    with pytest.raises(ValueError):
        Cart().add("tea", 3, 0)


def test_saves(tmp_path):
    cart = Cart()
    cart.add("tea", 3)
    cart.save(tmp_path / "cart.json")
    assert (tmp_path / "cart.json").read_text() == '{"tea": [3, 1]}'


def test_other_process():
    assert subprocess.check_output([sys.executable, "-c", "print(6 * 7)"]) == b"42\n"
