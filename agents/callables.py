"""Find the Python function that a manifest names as `module:function`."""

import importlib
from collections.abc import Callable
from typing import Any

from agents.spec import ManifestInvalid


def resolve(name: str) -> Callable[..., Any]:
    """Import the module and return the function; the import happens here, not before.

    Raises:
        ManifestInvalid: the name has another form, or there is no such module or function.
    """
    module_name, separator, attribute = name.partition(":")
    if not separator or not module_name or not attribute.isidentifier():
        raise ManifestInvalid(f"{name!r} does not have the form module:function")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ManifestInvalid(f"{name!r} cannot be imported: {error}") from error
    if not callable(found):
        raise ManifestInvalid(f"{name!r} is not a function")
    resolved: Callable[..., Any] = found
    return resolved
