"""A standing attack: what kills, disks and the authors of files can do, counted.

``python -m attack`` makes the long form and writes its counts; ``test_attack.py`` the short one.
Every attack draws from a fixed seed, and returns an :class:`Outcome`.
"""

from dataclasses import dataclass


@dataclass
class Outcome:
    """What came of an attack.

    Attributes
    ----------
    attack
        What was done.
    tried
        How often.
    lost
        Finished work that was not there any more.
    wrong
        Answers that were not those of an undisturbed run, or of the good file.
    raw
        Errors that are not ours: they name neither the file nor the fix.
    run
        Programs started, hosts asked, files outside read and code executed.
    """

    attack: str
    tried: int = 0
    lost: int = 0
    wrong: int = 0
    raw: int = 0
    run: int = 0

    @property
    def harm(self) -> int:
        """How much of it did harm."""
        return self.lost + self.wrong + self.raw + self.run
