"""Readers that do everything wrong, for the tests of the trial's watch; quick to import in a process of its own."""

import os


def misbehave(how: str | None) -> str:
    from idecode_core.errors import InputError

    if how == "hang":
        while True:
            pass
    if how == "die":
        os._exit(3)
    if how == "raise":
        raise IndexError("out of range")
    if how == "print":
        os.write(2, b"Traceback (most recent call last):\n")
    if how == "refuse":
        raise InputError("not a picture")
    if how == "grow":
        return str(len(bytearray(os.urandom(2**20) * 200)))
    return "fine"


def accept(file: object) -> str:
    return "read"
