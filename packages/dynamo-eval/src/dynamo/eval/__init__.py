"""Frame capture (PEP 523): bytecode to graphs, guards and new bytecode."""
