"""Find the Python function that a manifest names as `module:function`."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents.spec import ManifestInvalid


def resolve(name: str) -> Callable[..., Any]:
    """Import the module and return the function; the import happens here, not before.

    Raises:
        ManifestInvalid: the name has another form, there is no such module or function, or the module fails while
            it is imported.
    """
    module_name, separator, attribute = name.partition(":")
    if not separator or not module_name or not attribute.isidentifier():
        raise ManifestInvalid(f"{name!r} does not have the form module:function")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ManifestInvalid(f"{name!r} cannot be imported: {error}") from error
    except SyntaxError as error:
        place = f"{Path(error.filename or '?').name}, line {error.lineno}"
        raise ManifestInvalid(f"{name!r} cannot be imported: {error.msg} ({place})") from error
    except (Exception, SystemExit) as error:
        raise ManifestInvalid(f"{name!r} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise ManifestInvalid(f"{name!r} is not a function")
    resolved: Callable[..., Any] = found
    return resolved
