"""A world whose bias we planted and therefore know: scenes, captions, and exact answers."""

from biaslib.planted._world import World, world

__all__ = ["World", "world"]
