"""What differs in the encoding between Python versions: one module each, chosen in `select`."""
