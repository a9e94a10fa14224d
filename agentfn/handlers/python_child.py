"""Calls one function of the user's: python_child.py FOLDER FILE-OR-MODULE FUNCTION, arguments as JSON on stdin.

Runs in the user's Python (3.8 or newer), so it uses nothing of agentfn and nothing newer. stdout carries the result
alone, a text as it is, anything else as JSON; with exit status 1 it carries the reason of a failure. What the function
prints goes to stderr.
"""

import os
import sys

# Python puts this file's folder on the path, where http.py would hide the standard library's http from the function.
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [entry for entry in sys.path if not entry or os.path.realpath(entry) != _HERE]

import importlib
import importlib.util
import json
import traceback


DONE = b"\0agentfn: done"


def load(folder, target):
    """Return the module: a file by its path, else a module by its name."""
    sys.path.insert(0, folder)
    if not target.endswith(".py"):
        return importlib.import_module(target)
    path = os.path.join(folder, target)
    if os.path.dirname(path) != folder:
        sys.path.insert(0, os.path.dirname(path))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def to_text(value):
    """Return what is sent for a result; raise for what JSON cannot say."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except TypeError:
        return as_json(value)


def as_json(value):
    """Return JSON also for dates and times (ISO text) and decimals (numbers with all their digits)."""
    import datetime
    import decimal

    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (as_key(key), as_json(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(as_json(item) for item in value)
    if isinstance(value, (datetime.date, datetime.time)):
        return json.dumps(value.isoformat())
    if isinstance(value, decimal.Decimal) and value.is_finite():
        return str(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=refuse)


def as_key(key):
    """Return a key as JSON writes it: always a text."""
    return json.dumps(key if isinstance(key, str) else as_json(key).strip('"'), ensure_ascii=False)


def refuse(value):
    """Say that JSON has no form for a value."""
    raise TypeError("the function returned %s, which is no JSON value" % type(value).__name__)


async def wait_for(awaitable):
    """Return what an awaitable gives."""
    return await awaitable


def call(folder, target, name, arguments):
    """Return the function's result as the bytes to be sent."""
    function = load(folder, target)
    for part in name.split("."):
        function = getattr(function, part)
    result = function(**arguments)
    if hasattr(result, "__await__"):
        import asyncio

        result = asyncio.run(wait_for(result))
    return to_text(result).encode("utf-8")


def reason_of(exc):
    """Return what the agent is told of a failure; the traceback is for the user alone."""
    if isinstance(exc, SystemExit):
        if exc.code in (None, 0):
            return "the function ended the process"
        return "the function ended the process: %s" % exc.code
    traceback.print_exc()
    return "%s: %s" % (type(exc).__name__, exc)


def main():
    """Call the function; on failure give the reason instead of a result and exit 1."""
    folder, target, name = sys.argv[1:4]
    arguments = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    # Prints of the function, and of whatever it imports or starts, must not mix with the result.
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        data = call(folder, target, name, arguments)
    except BaseException as exc:
        answer.write(reason_of(exc).encode("utf-8", "backslashreplace"))
        answer.close()
        sys.stderr.flush()
        os._exit(1)
    # Whoever ends the process before this line has not answered, whatever the exit status.
    answer.write(data + DONE)
    answer.close()


if __name__ == "__main__":
    main()
