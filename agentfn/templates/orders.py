"""The agent's function: plain Python that knows nothing of agents. What it returns is sent back as JSON."""

ORDERS = {
    1042: {"state": "shipped", "arrives": "Thursday"},
    1043: {"state": "being packed"},
}


def get_order(number):
    """Return an order; an exception is told to the agent, which can then say what is wrong."""
    if number not in ORDERS:
        raise LookupError(f"there is no order {number}")
    return {"number": number, **ORDERS[number]}
