"""Random Python programs, run captured and plainly: nothing that can be seen may differ.

``python -m tests.fuzz --programs 1000 --seed 0`` writes programs from a grammar (control flow, containers, closures, classes,
exceptions, generators, effects, tensors, breaks at random places), compares, shrinks what differs and prints it.
"""
