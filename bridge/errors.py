"""Errors that end a command with a sentence instead of a traceback."""


class MendableError(Exception):
    """An error that the user can mend. The message is one sentence that says what is wrong."""
