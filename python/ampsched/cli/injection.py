"""Options of commands that are declared elsewhere."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any


def with_options(
    command: Callable[..., None],
    place: str,
    options: Sequence[inspect.Parameter],
    gather: Callable[[dict[str, Any]], object],
) -> Callable[..., None]:
    """A command with options instead of one of its parameters.

    Args:
        command: The command.
        place: That parameter, behind a ``*``.
        options: The options, as Typer wants them.
        gather: Makes the parameter's value of those of the options, by name.
    """

    @functools.wraps(command)
    def wrapped(**values: Any) -> None:  # noqa: ANN401
        given = {option.name: values.pop(option.name) for option in options}
        command(**values, **{place: gather(given)})

    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        parameters += options if name == place else [parameter]
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": None}
    return wrapped


def option(name: str, kind: object, default: object, declared: object) -> inspect.Parameter:
    """An option as Typer wants it."""
    annotation = Annotated[kind, declared]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
