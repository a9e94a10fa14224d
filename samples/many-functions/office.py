"""The functions of the office helper; each returns plain data."""

PEOPLE = {"Kim": ("Payroll", 104), "Lee": ("Legal", 230), "Sasha": ("Design", 317)}
MENU = {"Monday": "pea soup", "Tuesday": "noodles", "Wednesday": "curry", "Thursday": "pancakes", "Friday": "fish"}


def who_is(name):
    team, extension = PEOPLE[name]
    return {"name": name, "team": team, "extension": extension}


def find_meeting_room(time):
    return {"time": time, "room": "Baltic"}


def lunch_menu(day):
    return {"day": day, "menu": MENU[day]}


def printer_status(floor):
    return {"floor": floor, "works": True, "toner": "62 %"}
