"""The bid phase of the paper's Example 2.1, statement by statement: module M_dealer1, its requests, cars and sales."""

from pyspark.sql import functions as f

import govtool
from govtool.workflow import cogroup, flatten


def calc_bid(model, available, sold):
    """The price: less for each car of the model that is there, more for each that was sold."""
    base = f.when(model == "Civic", 20400).when(model == "Accord", 24400)
    there = f.coalesce(f.get(available, f.lit(0)).getField("NumAvail"), f.lit(0))
    gone = f.coalesce(f.get(sold, f.lit(0)).getField("NumSold"), f.lit(0))
    return base - 200 * there + 150 * gone


@govtool.module(
    "M_dealer1",
    inputs={"Requests": "UserId string, BidId string, Model string"},
    state={"Cars": "CarId string, Model string", "SoldCars": "CarId string, BidId string"},
    outputs=["Bids"],
)
def dealer(requests, cars, sold_cars):
    req_model = requests.select("Model")
    inventory = cars.join(req_model, "Model")
    sold_inventory = inventory.join(sold_cars, "CarId")
    num_cars = inventory.groupBy("Model").agg(f.count("*").alias("NumAvail"))
    num_sold = sold_inventory.groupBy("Model").agg(f.count("*").alias("NumSold"))
    info = cogroup(requests, num_cars, num_sold, by="Model", names=["Requests", "NumCars", "NumSold"])
    bids = flatten(info.withColumnRenamed("Model", "group"), "Requests")
    price = calc_bid(bids.Model, bids.NumCars, bids.NumSold)
    return {"Bids": bids.select("BidId", "UserId", "Model", price.alias("Amount"))}


flow = govtool.Workflow("dealership", [dealer])
