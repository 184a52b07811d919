"""Both phases of the paper's dealership, with two dealers: bids of the request, then the purchase from the cheaper one.

A dealer stands at two nodes: its second invocation of an execution finds the offers that its first one kept.
"""

from pyspark.sql import functions as f

import govtool

ORDERS = "BidId string, Model string, Dealer int"
BID = "BidId string, Model string, Dealer int, Amount int"


@govtool.module("M_and", inputs={"Requests": "BidId string, Model string"}, outputs={"Orders": ORDERS})
def fan_out(requests):
    return requests.select("BidId", "Model", f.lit(None).cast("int").alias("Dealer"))


def dealer(number):
    @govtool.module(
        f"M_dealer{number}",
        inputs={"Orders": ORDERS},
        state={"Cars": "CarId string, Model string", "Offers": "BidId string, Amount bigint"},
        outputs=[f"Bids_{number}", f"Sold_{number}"],
    )
    def deal(orders, cars, offers):
        inventory = cars.join(orders.where("Dealer IS NULL").drop("Dealer"), "Model")
        available = inventory.groupBy("BidId", "Model").agg(f.count("*").alias("NumAvail"))
        amount = (20400 - 200 * f.col("NumAvail")).alias("Amount")
        bids = available.select("BidId", "Model", f.lit(number).alias("Dealer"), amount)
        sold = orders.where(f.col("Dealer") == number).join(offers, "BidId").select("BidId", "Amount")
        offered = offers.unionAll(bids.select("BidId", "Amount"))
        return {f"Bids_{number}": bids, f"Sold_{number}": sold, "Offers": offered}

    return deal


@govtool.module("M_agg", inputs=["Bids_1", "Bids_2"], outputs=["BestBid"])
def aggregate(first, second):
    return first.unionAll(second).groupBy("BidId").agg(f.min("Amount").alias("Best"))


@govtool.module("M_xor", inputs=["Bids_1", "Bids_2", "BestBid"], outputs={"Orders": ORDERS})
def decide(first, second, best):
    lowest = best.withColumnRenamed("BidId", "BestId")
    bids = first.unionAll(second)
    won = bids.join(lowest, (bids.BidId == lowest.BestId) & (bids.Amount == lowest.Best))
    return won.select("BidId", "Model", "Dealer")


@govtool.module("M_car", inputs=["Sold_1", "Sold_2"], outputs=["Sold"])
def deliver(first, second):
    return first.unionAll(second)


dealers = {number: dealer(number) for number in (1, 2)}
flow = govtool.Workflow(
    "phases",
    {
        "and": fan_out, "agg": aggregate, "xor": decide, "car": deliver,
        **{f"bid{number}": each for number, each in dealers.items()},
        **{f"buy{number}": each for number, each in dealers.items()},
    },
    [
        ("agg", "xor", "BestBid"),
        *(("and", f"bid{number}", "Orders") for number in dealers),
        *((f"bid{number}", to, f"Bids_{number}") for number in dealers for to in ("agg", "xor")),
        *(("xor", f"buy{number}", "Orders") for number in dealers),
        *((f"buy{number}", "car", f"Sold_{number}") for number in dealers),
    ],
)  # fmt: skip
