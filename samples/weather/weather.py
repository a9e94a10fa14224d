"""The three functions of the weather assistant. An exception is told to the agent as the reason of a failure."""

NICKNAMES = {"Seattle, WA": "The Emerald City"}
CELSIUS = {"Seattle, WA": 21}


def get_favorite_city():
    return "Seattle, WA"


def get_city_nickname(location):
    if location not in NICKNAMES:
        raise LookupError(f"no nickname is known for {location}")
    return NICKNAMES[location]


def get_weather(location, unit="f"):
    if location not in CELSIUS:
        raise LookupError(f"there is no weather station in {location}")
    celsius = CELSIUS[location]
    return {"temperature": celsius if unit == "c" else round(celsius * 9 / 5 + 32), "unit": unit}
