"""Answers get_horoscope: the call's arguments come as JSON on standard input, what is printed is the output."""

import json
import sys

READINGS = {
    "aquarius": "A baby otter will become your friend next Tuesday.",
    "taurus": "Somebody returns a book you had forgotten.",
}

sign = json.load(sys.stdin)["sign"]
reading = READINGS.get(sign.lower(), "A quiet day, good for writing tests.")
print(json.dumps({"sign": sign, "horoscope": reading}))
