"""Calls one function of the user's: python_child.py FOLDER FILE-OR-MODULE FUNCTION, arguments as JSON on stdin.

Runs in the user's Python (3.8 or newer), so it uses nothing of agentfn and nothing newer. What the function prints goes
to stderr; stdout carries the result alone: a text as it is, anything else as JSON.
"""

import asyncio
import datetime
import decimal
import importlib
import importlib.util
import inspect
import json
import os
import sys
import traceback


def load(folder, target):
    """Return the module: a file by its path, else a module by its name."""
    sys.path.insert(0, folder)
    if not target.endswith(".py"):
        return importlib.import_module(target)
    path = os.path.join(folder, target)
    sys.path.insert(0, os.path.dirname(path))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def other(value):
    """Return what JSON has no form for: dates as ISO text, decimals as numbers, sets never."""
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal) and value.is_finite():
        return int(value) if value == value.to_integral_value() else float(value)
    raise TypeError("the function returned %s, which is no JSON value" % type(value).__name__)


def main():
    """Call the function; on failure say why on the last line of stderr and exit 1."""
    folder, target, name = sys.argv[1:4]
    arguments = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    # Prints of the function, and of whatever it imports or starts, must not mix with the result.
    result_file = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        function = load(folder, target)
        for part in name.split("."):
            function = getattr(function, part)
        result = function(**arguments)
        if inspect.isawaitable(result):
            result = asyncio.run(wait_for(result))
        if not isinstance(result, str):
            result = json.dumps(result, ensure_ascii=False, allow_nan=False, default=other)
        data = result.encode("utf-8")
    except BaseException as exc:
        if isinstance(exc, SystemExit) and exc.code in (None, 0):
            exc = RuntimeError("the function ended the process")
        if not isinstance(exc, SystemExit):
            traceback.print_exc()
        sys.stderr.write("\n\x1d%s: %s" % (type(exc).__name__, exc))
        sys.stderr.flush()
        os._exit(1)
    result_file.write(data)
    result_file.close()


async def wait_for(awaitable):
    """Return what an awaitable gives."""
    return await awaitable


if __name__ == "__main__":
    main()
