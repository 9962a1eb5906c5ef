"""A real model's answer."""
import command
from command import good


def real_model():
    path = command.test_model()
    if path:
        r = good(path, "--greedy", "-n", "24", "Name the capital of France.")
        assert b"Paris" in r.out, r.out


command.main([real_model])
