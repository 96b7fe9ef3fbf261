"""Why a start ends.

StartFailed            exit code 1: something outside is not as it must be
    SettingsInvalid    exit code 2: what was asked for makes no sense

The message is for a person at a terminal: what is wrong and what to do, one sentence (settings: one line for each).
"""


class StartFailed(Exception):
    """We cannot start, or not go on; says why and what to do."""

    exit_code = 1


class SettingsInvalid(StartFailed):
    """One or more settings cannot be used; one line for each."""

    exit_code = 2
