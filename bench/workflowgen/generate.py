"""Generated specs: the data of the paper's settings, drawn from a seed."""

from __future__ import annotations

import math
import random
from typing import Any

from bench.workflowgen.arctic import VARIABLES
from bench.workflowgen.car import DEALERS, MODELS

FIRST_YEAR, LAST_YEAR = 1961, 2000


def car_spec(cars: int, prior: int, executions: int, seed: int = 7, accept: float = 0.0) -> dict[str, Any]:
    """Car dealerships after some executions, with more to run.

    Args:
        cars: Cars of all dealers together.
        prior: Executions that went before: each left a bid with every dealer.
        executions: How many are to run.
        seed: Of the random numbers.
        accept: The probability with which the buyer accepts; 0: nobody buys, so that all executions run.
    """
    draw = random.Random(seed)
    model = draw.choice(MODELS)
    dealers: dict[str, Any] = {}
    for dealer in DEALERS:
        own = [
            [f"cars:{dealer}/{number}", dealer * 1_000_000 + number, draw.choice(MODELS)]
            for number in range(cars // len(DEALERS))
        ]
        sold = [
            [f"sold:{dealer}/{row[1]}", row[1], f"S{row[1]}"] for row in draw.sample(own, min(len(own), len(own) // 20))
        ]
        history = [
            [f"bids:{dealer}/{number}", "P1", f"H{number}", draw.choice(MODELS), 500_000 - 10 * number + dealer]
            for number in range(prior)
        ]
        dealers[str(dealer)] = {"cars": own, "sold": sold, "history": history}
    execs = [
        {
            "request": [f"requests:{number}", "P1", f"B{number}", model],
            "choice": [f"choices:{number}", f"B{number}", 1_000_000, int(draw.random() < accept)],
        }
        for number in range(1, executions + 1)
    ]
    buyer = {"user": "P1", "model": model, "reserve": 1_000_000, "accept_probability": accept}
    return {"dealers": dealers, "buyer": buyer, "execs": execs}


def arctic_spec(
    stations: int, topology: str, fan: int, selectivity: str, executions: int, prior: int = 0, seed: int = 7
) -> dict[str, Any]:
    """Arctic stations with monthly observations of 1961 to 2000, 480 a station, and of ``prior`` executions besides."""
    draw = random.Random(seed)
    history = {
        str(station): [
            [f"obs:{station}/{number}", *_month(number), *_observation(draw, station, _month(number)[1])]
            for number in range(12 * (LAST_YEAR - FIRST_YEAR + 1) + prior)
        ]
        for station in range(1, stations + 1)
    }
    execs = []
    for number in range(1, executions + 1):
        year, month = _month(12 * (LAST_YEAR - FIRST_YEAR + 1) + prior + number - 1)
        measures = {
            str(station): [f"measure:{number}/{station}", *_observation(draw, station, month)]
            for station in range(1, stations + 1)
        }
        execs.append({"query": [f"query:{number}", year, month], "measure": measures})
    return {
        "n": stations,
        "topology": topology,
        "fan": fan,
        "selectivity": selectivity,
        "history": history,
        "execs": execs,
    }


def _month(number: int) -> tuple[int, int]:
    return FIRST_YEAR + number // 12, number % 12 + 1


def _observation(draw: random.Random, station: int, month: int) -> list[int]:
    """A seasonal cosine with noise, in tenths of a degree; then the other variables."""
    temperature = -150 - 5 * station - 180 * math.cos(2 * math.pi * (month - 7) / 12) * -1 + draw.gauss(0, 30)
    return [round(temperature), *(draw.randrange(1000) for _ in VARIABLES[1:])]
