"""The user's function that `module:function` names, for `riffdb worker --handler`.

Modules are looked for in the current folder, then in the application's, then among what is installed. Whatever the
import raises, a `SystemExit` included, is `RDB-E-USAGE` with kind and place; its text may hold values and stays away.
"""

import importlib
import sys
from pathlib import Path

from riffdb.core.errors import RiffError
from riffdb.core.incidents import described
from riffdb.core.suggestions import did_you_mean
from riffdb.scheduler import Handler


def load_handler(place: str, folders: tuple[Path, ...]) -> Handler:
    """The function at `module:function`; `RDB-E-USAGE` if there is none."""
    module_name, colon, name = place.partition(":")
    if not colon or not module_name or not name:
        raise _refusal("give module:function, such as handlers:complete")
    if module_name.endswith(".py"):
        raise _refusal("give the module's name without `.py`, such as handlers:complete")
    for folder in reversed(folders):
        sys.path.insert(0, str(folder.resolve()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise _refusal(f"there is no module `{error.name}` here or installed") from error
    except (Exception, SystemExit) as error:
        raise _refusal(f"importing `{module_name}` raised {described(error)}") from error
    found = getattr(module, name, None)
    if not callable(found):
        names = [known for known, value in vars(module).items() if callable(value) and not known.startswith("_")]
        raise _refusal(f"`{module_name}` has no function `{name}`{did_you_mean(name, names)}")
    handler: Handler = found
    return handler


def _refusal(reason: str) -> RiffError:
    return RiffError("RDB-E-USAGE", f"--handler: {reason}")
