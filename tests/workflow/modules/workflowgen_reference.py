"""WorkflowGen in a few lines of Python, straight from the definitions: what Spark's outputs are compared with."""

from __future__ import annotations

from bench.workflowgen.arctic import above_each
from bench.workflowgen.car import BASE, DEALERS
from bench.workflowgen.family import OutputRow


def car(spec, without=(), executions=None):
    """Outputs of a spec, up to a purchase; or of so many executions, whatever happens in them."""
    state = {
        dealer: {name: [row[1:] for row in spec["dealers"].get(str(dealer), {}).get(name, ()) if row[0] not in without]
                 for name in ("cars", "sold", "history")}
        for dealer in DEALERS
    }  # fmt: skip
    found = []
    for number, given in enumerate(spec["execs"][:executions], 1):
        requests = [given["request"][1:]] if given["request"][0] not in without else []
        choices = [given["choice"][1:]] if given["choice"][0] not in without else []
        bids = []
        for user, bid, model in requests:
            for dealer, own in state.items():
                cars = [car for car, its in own["cars"] if its == model]
                gone = [car for car, _ in own["sold"] if car in cars]
                price = BASE[model] - 200 * len(cars) + 150 * len(gone)
                prior = [row[3] for row in own["history"] if (row[0], row[2]) == (user, model)]
                if prior:
                    price = min(price, min(prior) - 100)
                bids.append((user, bid, model, dealer, price // 10 * 10 + dealer - 1))
        for user, bid, model, dealer, amount in bids:
            state[dealer]["history"].append([user, bid, model, amount])
        best = {bid: min(row[4] for row in bids if row[1] == bid) for _, bid, *_ in bids}
        found += [OutputRow(number, "BestBid", (bid,), amount) for bid, amount in best.items()]
        sold = []
        for _, bid, model, dealer, amount in bids:
            if any(b == bid and accept == 1 and amount == best[bid] <= reserve for b, reserve, accept in choices):
                own = state[dealer]
                gone = {car for car, _ in own["sold"]}
                free = sorted(car for car, its in own["cars"] if its == model and car not in gone)
                if free:
                    own["sold"].append([free[0], bid])
                    sold.append(OutputRow(number, "Sold", (bid, dealer, free[0]), amount))
        found += sold
        if sold and executions is None:
            break
    return found


def arctic(spec, without=()):
    """Outputs of a spec."""
    above, last = above_each(int(spec["n"]), spec["topology"], int(spec.get("fan") or 1))
    state = {
        station: [row[1:4] for row in spec["history"].get(str(station), ()) if row[0] not in without]
        for station in above
    }
    seasons = {month: month % 12 // 3 for month in range(1, 13)}
    found = []
    for number, given in enumerate(spec["execs"], 1):
        token, year, month = given["query"]
        queries = [(year, month)] if token not in without else []
        wanted = {
            "all": lambda y, m: True,
            "season": lambda y, m, month=month: seasons[m] == seasons[month],
            "month": lambda y, m, month=month: m == month,
            "year": lambda y, m, year=year: y == year,
        }[spec["selectivity"]]
        minima = {}
        for station, others in above.items():
            row = given["measure"].get(str(station))
            if row is not None and row[0] not in without:
                state[station].append((year, month, row[1]))
            own = [t for y, m, t in state[station] if queries and wanted(y, m)]
            own += [minima[other] for other in others if minima[other] is not None]
            minima[station] = min(own, default=None)
        found += [OutputRow(number, "minTemp", (station,), value) for station, value in minima.items()]
        ends = [minima[station] for station in last if minima[station] is not None]
        found.append(OutputRow(number, "overall", (), min(ends, default=None)))
    return found
