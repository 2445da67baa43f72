"""What a scenario can see of a callable, written down so that two runs can be compared."""

import asyncio
import gc

OK, ERROR = ("unset", None), ("error", None)


def outcome(name):
    """Return what a span has that ended so."""
    return ("unset", name)


class Boom(Exception):  # noqa: N818 - the scenarios read better so
    """The program's own error."""


class Hard(BaseException):
    """An exit that is no error."""


def saw(action):
    """Return what a call returned, or which exception left it."""
    try:
        return "returned", action()
    except BaseException as exc:  # noqa: BLE001 - whatever it is, it is compared
        return "raised", type(exc), str(exc), type(exc.__cause__), type(exc.__context__)


def seen_by_loop(coroutine_function):
    """Run a coroutine function in a loop of its own; what the loop complains of counts as seen."""
    complaints = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, about: complaints.append(about["message"])
        )
        return await coroutine_function()

    result = saw(lambda: asyncio.run(main()))
    gc.collect()
    return result, complaints
