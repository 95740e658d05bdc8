"""Functions that mean something to capture and nothing to Python; `dynamo.eval.models.landmarks` tells what."""


def graph_break() -> None:
    """End the graph here; does nothing when run plainly."""


def is_compiling() -> bool:
    """True while captured code runs this symbolically, False when run plainly."""
    return False
