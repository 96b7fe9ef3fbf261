"""What somebody changed in the store, as a change stream tells it.

Source: DESIGN 4 (changes made by anybody count alike). An event says where to look, never what is there: whoever hears
of it reads the store again.
"""

import enum
from dataclasses import dataclass


class Subject(enum.StrEnum):
    """What was changed."""

    EVERYTHING = "everything"
    """The stream has begun, or has lost its place: any number of changes may have been missed."""
    SERVER = "server"
    ENTRY = "entry"
    KEY = "key"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True)
class StoreChange:
    """One event. `id` is the document's id as text, empty for EVERYTHING."""

    subject: Subject
    id: str = ""


EVERYTHING = StoreChange(Subject.EVERYTHING)
