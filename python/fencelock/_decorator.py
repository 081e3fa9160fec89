"""What the decorators of both clients share: names made from arguments, and what they refuse."""

from __future__ import annotations

import inspect
import string
from typing import Any, Callable

from fencelock.errors import InvalidArgumentError


def refuse_generator(function: Callable[..., Any]) -> None:
    """Refuses a function whose body runs only after its call, when the lock is free again."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        text = (
            "a generator's body runs after the call, when the lock is released already: "
            "take the lock within the body, with `with` or `async with`"
        )
        raise InvalidArgumentError(text)


def namer(template: str, function: Callable[..., Any]) -> Callable[..., str]:
    """Gives what makes the lock's name of the arguments of a call.

    `template` is a format string whose fields are the function's parameters. A field that is no
    parameter is refused here, when the function is decorated.
    """
    signature = inspect.signature(function)
    fields = [field for _, field, _, _ in string.Formatter().parse(template) if field is not None]
    if not fields:
        return lambda *_args, **_kwargs: template
    for field in fields:
        parameter = field.partition(".")[0].partition("[")[0]
        if parameter not in signature.parameters:
            known = ", ".join(signature.parameters) or "none"
            text = (
                f"the lock's name {template!r} asks for {parameter!r}, which is no parameter of "
                f"{getattr(function, '__qualname__', function)!s} (it has: {known})"
            )
            raise InvalidArgumentError(text)

    def name(*args: Any, **kwargs: Any) -> str:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return template.format(**bound.arguments)

    return name
