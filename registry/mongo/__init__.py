"""The authority: MongoDB. The only place that names its driver, and that knows how documents are spelled.

motor runs each call on a thread of its own pool, which all clients of the process share. Its default, five a core, is
used up by a few calls to a store that is frozen; the size is read when motor is first imported, hence here.
"""

import os

os.environ.setdefault("MOTOR_MAX_WORKERS", "64")  # noqa: TID251  written, not read: motor has no other way to be told
