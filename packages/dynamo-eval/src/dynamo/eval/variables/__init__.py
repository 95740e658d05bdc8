"""Variables: what stands for a Python value while a frame is captured. One module per kind."""
