"""Checks the steps of a scenario; docs/scenario.md describes the grammar in the same order."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from agentfn.emulator.spans import seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentfn.document.read import Document, Path
    from agentfn.errors import Finding

ANSWERS = ("say", "call", "error", "fail", "incomplete")
MODIFIERS = ("when", "delay", "accepts_after", "cut", "advance", "usage", "repeat", "allow_duplicate_ids")
CUTS = ("before", "mid", "after")
CALL_KEYS = ("name", "arguments", "raw", "id")
ERROR_KEYS = ("status", "code", "message", "headers", "type")
USAGE_KEYS = ("input_tokens", "output_tokens", "total_tokens")

#: What a step may hold together; everything else stands alone.
_TOGETHER = ({"say", "call"}, {"say", "incomplete"}, {"call", "incomplete"}, {"say", "call", "incomplete"})


def is_pattern(text: str) -> bool:
    """Tell whether a condition is a regular expression, written between slashes."""
    return len(text) > 2 and text.startswith("/") and text.endswith("/")  # noqa: PLR2004  # two slashes and something


def is_long_form(entry: dict[str, Any]) -> bool:
    """Tell whether a call is written with name and arguments, rather than as a function's name and its arguments."""
    return isinstance(entry.get("name"), str)


def is_pause(step: dict[str, Any]) -> bool:
    """Tell whether a step only moves the clock: it is no answer and goes together with the step before it."""
    return "advance" in step and not {*ANSWERS, "cut"} & set(step)


class Checker:
    """Collects what is wrong with a scenario's steps."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.findings: list[Finding] = []

    def _error(self, path: Path, message: str, *, at_key: bool = False) -> None:
        # A scenario written in place has no places of its own; the path says where.
        if self._document.position(path) == (0, 0) and path:
            message = f"step {'.'.join(str(p + 1) if isinstance(p, int) else p for p in path)}: {message}"
        place = self._document.key_finding if at_key else self._document.finding
        self.findings.append(place(path, "scenario", message))

    def _unknown(self, mapping: dict[str, Any], known: Iterable[str], path: Path, what: str) -> None:
        allowed = tuple(known)
        for key in mapping:
            if key not in allowed:
                close = get_close_matches(str(key), allowed, n=1)
                meant = f" (did you mean {close[0]}?)" if close else f"; known: {', '.join(allowed)}"
                self._error((*path, key), f"{what} has no key {key}{meant}", at_key=True)

    def check(self, step: Any, path: Path) -> None:
        """Check one step."""
        if not isinstance(step, dict):
            self._error(path, f"a step is a mapping with one of {', '.join(ANSWERS)}")
            return
        self._unknown(step, (*ANSWERS, *MODIFIERS), path, "a step")
        answers = {key for key in ANSWERS if key in step}
        if len(answers) > 1 and answers not in _TOGETHER:
            self._error(path, f"{' and '.join(key for key in ANSWERS if key in answers)} do not go together")
        if not answers and "advance" not in step and step.get("cut") != "before":
            self._error(path, f"a step needs one of {', '.join(ANSWERS)}")
        if is_pause(step) and {"repeat", "delay", "usage"} & set(step):
            self._error(path, "a step that only advances the clock takes no repeat, delay or usage")
        if "accepts_after" in step and "call" not in step:
            self._error((*path, "accepts_after"), "accepts_after belongs to a step with call")
        for key in ("say", "incomplete"):
            if key in step and not isinstance(step[key], str):
                self._error((*path, key), f"{key} must be text; quote it")
        self._check_modifiers(step, path)
        for key, check in (
            ("error", self._check_error),
            ("fail", self._check_fail),
            ("when", self._check_when),
            ("usage", self._check_usage),
            ("call", self._check_calls),
        ):
            if key in step:
                check(step[key], (*path, key))
        if "call" in step and step.get("allow_duplicate_ids") is not True:
            self._check_ids(step["call"], (*path, "call"))

    def _check_modifiers(self, step: dict[str, Any], path: Path) -> None:
        for key in ("delay", "advance", "accepts_after"):
            if key in step and seconds_of(step[key]) is None:
                self._error((*path, key), f"{key} is a span such as 200ms, 2s or 11m, got {step[key]!r}")
        if "cut" in step:
            if step["cut"] not in CUTS:
                self._error((*path, "cut"), f"cut is one of {', '.join(CUTS)}, got {step['cut']!r}")
            elif "error" in step:
                self._error((*path, "cut"), "error and cut do not go together: the client gets one or the other")
        repeat = step.get("repeat", 1)
        if repeat != "forever" and (isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 1):
            self._error((*path, "repeat"), f"repeat is a number from 1 on, or forever, got {repeat!r}")
        if not isinstance(step.get("allow_duplicate_ids", False), bool):
            self._error((*path, "allow_duplicate_ids"), "allow_duplicate_ids is true or false")

    def _check_error(self, error: Any, path: Path) -> None:
        if not isinstance(error, dict) or "status" not in error:
            self._error(path, f"error is a mapping with status, and optionally {', '.join(ERROR_KEYS[1:])}")
            return
        self._unknown(error, ERROR_KEYS, path, "error")
        status = error["status"]
        if isinstance(status, bool) or not isinstance(status, int) or not 400 <= status <= 599:  # noqa: PLR2004  # HTTP's errors
            self._error((*path, "status"), f"status is an HTTP error from 400 to 599, got {status!r}")
        for key in ("code", "message", "type"):
            if key in error and not isinstance(error[key], str):
                self._error((*path, key), f"{key} must be text; quote it")
        headers = error.get("headers", {})
        if not isinstance(headers, dict):
            self._error((*path, "headers"), "headers is a mapping of names to values")
            return
        for name, value in headers.items():
            if isinstance(value, (dict, list)) or not re.fullmatch(r"[\x20-\x7e]*", str(value)):
                self._error((*path, "headers", name), "a header's value is one line of plain text")
            if not re.fullmatch(r"[A-Za-z0-9-]+", name):
                self._error((*path, "headers", name), f"{name!r} is no header name", at_key=True)

    def _check_fail(self, fail: Any, path: Path) -> None:
        if not isinstance(fail, dict):
            self._error(path, "fail is a mapping with code and message")
            return
        self._unknown(fail, ("code", "message"), path, "fail")
        for key in ("code", "message"):
            if not isinstance(fail.get(key, ""), str):
                self._error((*path, key), f"{key} must be text; quote it")

    def _check_usage(self, usage: Any, path: Path) -> None:
        if not isinstance(usage, dict):
            self._error(path, f"usage is a mapping with {', '.join(USAGE_KEYS)}")
            return
        self._unknown(usage, USAGE_KEYS, path, "usage")
        for key, value in usage.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                self._error((*path, key), f"{key} is a number of tokens, got {value!r}")

    def _check_when(self, when: Any, path: Path) -> None:
        if not isinstance(when, dict) or not when:
            self._error(path, "when is a mapping with message, output or step")
            return
        self._unknown(when, ("message", "output", "step"), path, "when")
        step = when.get("step", 1)
        if isinstance(step, bool) or not isinstance(step, int) or step < 1:
            self._error((*path, "step"), f"step is the number of a model step, counted from 1, got {step!r}")
        if "message" in when:
            self._check_condition(when["message"], (*path, "message"))
        output = when.get("output")
        if isinstance(output, dict) and output:
            for function, text in output.items():
                self._check_condition(text, (*path, "output", function))
        elif "output" in when:
            self._check_condition(output, (*path, "output"))

    def _check_condition(self, text: Any, path: Path) -> None:
        if not isinstance(text, str):
            self._error(path, f"{path[-1]} is compared with text; quote {text!r}")
        elif is_pattern(text):
            try:
                re.compile(text[1:-1])
            except re.error as exc:
                self._error(path, f"{text} is no regular expression: {exc}")

    def _check_calls(self, call: Any, path: Path) -> None:
        entries = [(path, call)]
        if isinstance(call, list):
            entries = [((*path, index), entry) for index, entry in enumerate(call)]
        if not entries:
            self._error(path, "call is empty; leave it out")
        for at, entry in entries:
            if not isinstance(entry, dict) or not entry:
                self._error(at, "call is {function: {arguments}}, or a list of such")
            elif is_long_form(entry):
                self._check_long_form(entry, at)
            else:
                for function, arguments in entry.items():
                    if arguments is not None and not isinstance(arguments, dict):
                        hint = "the arguments of a call are a mapping; for other text use {name: …, raw: …}"
                        self._error((*at, function), hint)

    def _check_long_form(self, entry: dict[str, Any], path: Path) -> None:
        self._unknown(entry, CALL_KEYS, path, "a call")
        if "raw" in entry and "arguments" in entry:
            self._error(path, "raw stands in place of arguments; write one of them")
        if not isinstance(entry.get("raw", ""), str):
            self._error((*path, "raw"), "raw is the exact text of the arguments; quote it")
        if not isinstance(entry.get("arguments") or {}, dict):
            self._error((*path, "arguments"), "arguments is a mapping; for other text use raw")
        if not isinstance(entry.get("id", "call"), str) or entry.get("id") == "":
            self._error((*path, "id"), "id is text; quote it")

    def _check_ids(self, call: Any, path: Path) -> None:
        used: dict[str, str] = {}
        for entry in call if isinstance(call, list) else [call]:
            if not isinstance(entry, dict) or not is_long_form(entry) or not isinstance(entry.get("id"), str):
                continue
            if entry["id"] in used:
                message = (
                    f"call_id {entry['id']} used by {used[entry['id']]} and {entry['name']}; their outputs could not be"
                    " told apart (allow_duplicate_ids: true plays it all the same)"
                )
                self._error(path, message)
            used[entry["id"]] = entry["name"]
