"""Car dealerships: requests for bids, four dealers, the best bid, a choice, and a purchase.

A dealer stands at two nodes, and its second invocation of an execution sees what the first kept. An order without a
dealer asks for bids; one with a dealer and an amount is a purchase.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import govtool
from bench.workflowgen.family import OutputRow, Spec, read_parquet, write_parquet
from govtool.workflow.modules.definition import Module
from govtool.workflow.modules.workflow import Workflow

DEALERS = (1, 2, 3, 4)
MODELS = ("A4", "A6", "Q5", "318i", "530i", "X3", "C180", "E220", "Golf", "Passat", "Polo", "Cayenne")
BASE = {**{model: 15000 + 2500 * number for number, model in enumerate(MODELS)}, "Civic": 20400, "Accord": 24400}
"""The price before discounts, by model."""
_ORDERS = "UserId string, BidId string, Model string, Dealer int, Amount bigint"
_BIDS = "UserId string, BidId string, Model string, Dealer int, Amount bigint"


# ---- the queries, shared by all arms --------------------------------------------------------------------------------


def bids_of(dealer: int, requests: Any, cars: Any, sold: Any, history: Any) -> Any:
    """The bids of a dealer: Example 2.1 of the paper, with the price function in SQL."""
    from pyspark.sql import functions as f

    models = requests.select(f.col("Model").alias("Wanted")).distinct()
    inventory = cars.join(models, cars.Model == models.Wanted).select("CarId", "Model")
    gone = inventory.join(sold.select(f.col("CarId").alias("SoldId")), f.col("CarId") == f.col("SoldId"))
    available = inventory.groupBy(f.col("Model").alias("AvailModel")).agg(f.count("*").alias("NumAvail"))
    taken = gone.groupBy(f.col("Model").alias("SoldModel")).agg(f.count("*").alias("NumSold"))
    earlier = history.groupBy(f.col("UserId").alias("PriorUser"), f.col("Model").alias("PriorModel")).agg(
        f.min("Amount").alias("Prior")
    )
    info = (
        requests.join(available, f.col("Model") == f.col("AvailModel"), "left")
        .join(taken, f.col("Model") == f.col("SoldModel"), "left")
        .join(earlier, (f.col("UserId") == f.col("PriorUser")) & (f.col("Model") == f.col("PriorModel")), "left")
    )
    price = base_price() - 200 * f.coalesce("NumAvail", f.lit(0)) + 150 * f.coalesce("NumSold", f.lit(0))
    lowest = f.when(f.col("Prior").isNotNull(), f.least(price, f.col("Prior") - 100)).otherwise(price)
    amount = f.floor(lowest / 10).cast("bigint") * 10 + (dealer - 1)
    return info.select("UserId", "BidId", "Model", f.lit(dealer).alias("Dealer"), amount.alias("Amount"))


def base_price() -> Any:
    """The price before discounts; NULL of a model that is not known."""
    from pyspark.sql import functions as f

    (first, price), *others = BASE.items()
    found = f.when(f.col("Model") == first, price)
    for model, other in others:
        found = found.when(f.col("Model") == model, other)
    return found


def sales_of(orders: Any, cars: Any, sold: Any) -> Any:
    """The purchases of a dealer: the unsold car of the model with the smallest id."""
    from pyspark.sql import functions as f

    unsold = cars.join(sold.select(f.col("CarId").alias("SoldId")), f.col("CarId") == f.col("SoldId"), "left_anti")
    first = unsold.groupBy(f.col("Model").alias("CarModel")).agg(f.min("CarId").alias("CarId"))
    chosen = orders.join(first, f.col("Model") == f.col("CarModel"))
    return chosen.select("BidId", "Dealer", "CarId", f.col("Amount").alias("Price"))


def united(frames: Sequence[Any]) -> Any:
    """Frames of one schema, side by side."""
    first, *others = frames
    for other in others:
        first = first.unionAll(other)
    return first


def best_of(bids: Any) -> Any:
    """The lowest bid of each request."""
    from pyspark.sql import functions as f

    return bids.groupBy("BidId").agg(f.min("Amount").alias("Amount"))


def purchases_of(bids: Any, best: Any, choice: Any) -> Any:
    """The orders of bids that are the best, and that the buyer accepts."""
    from pyspark.sql import functions as f

    lowest = best.select(f.col("BidId").alias("BestId"), f.col("Amount").alias("Best"))
    wanted = choice.select(f.col("BidId").alias("ChoiceId"), "Reserve", "Accept")
    joined = bids.join(lowest, (f.col("BidId") == f.col("BestId")) & (f.col("Amount") == f.col("Best")))
    chosen = joined.join(wanted, f.col("BidId") == f.col("ChoiceId"))
    accepted = chosen.where((f.col("Accept") == 1) & (f.col("Best") <= f.col("Reserve")))
    return accepted.select("UserId", "BidId", "Model", "Dealer", "Amount")


# ---- modules --------------------------------------------------------------------------------------------------------


@govtool.module("M_and", {"Requests": "UserId string, BidId string, Model string"}, outputs={"Orders": _ORDERS})
def fan_out(requests: Any) -> Any:
    """Hand a request to all dealers."""
    from pyspark.sql import functions as f

    nothing = f.lit(None).cast("int").alias("Dealer"), f.lit(None).cast("bigint").alias("Amount")
    return requests.select("UserId", "BidId", "Model", *nothing)


def dealer_module(dealer: int, car_id: str) -> Module:
    """The module of a dealer, whose cars have ids of a type."""
    sold_name = f"Sold_{dealer}"

    @govtool.module(
        f"M_dealer{dealer}",
        {"Orders": _ORDERS},
        {
            "Cars": f"CarId {car_id}, Model string",
            "SoldCars": f"CarId {car_id}, BidId string",
            "History": "UserId string, BidId string, Model string, Amount bigint",
        },
        {f"Bids_{dealer}": _BIDS, sold_name: f"BidId string, Dealer int, CarId {car_id}, Price bigint"},
    )
    def deal(orders: Any, cars: Any, sold: Any, history: Any) -> Mapping[str, Any]:
        from pyspark.sql import functions as f

        bids = bids_of(dealer, orders.where("Dealer IS NULL"), cars, sold, history)
        sales = sales_of(orders.where(f.col("Dealer") == dealer), cars, sold)
        return {
            f"Bids_{dealer}": bids,
            sold_name: sales,
            "History": history.unionAll(bids.select("UserId", "BidId", "Model", "Amount")),
            "SoldCars": sold.unionAll(sales.select("CarId", "BidId")),
        }

    return deal


@govtool.module("M_agg", [f"Bids_{dealer}" for dealer in DEALERS], outputs=["BestBid"])
def aggregate(*bids: Any) -> Any:
    """The best bid."""
    return best_of(united(bids))


@govtool.module("M_choice", {"Answer": "BidId string, Reserve bigint, Accept int"}, outputs=["Choice"])
def choose(answer: Any) -> Any:
    """What the buyer decides."""
    return answer


@govtool.module("M_xor", [*(f"Bids_{dealer}" for dealer in DEALERS), "BestBid", "Choice"], outputs={"Orders": _ORDERS})
def decide(*frames: Any) -> Any:
    """The order to the dealer who won."""
    *bids, best, choice = frames
    return purchases_of(united(bids), best, choice)


@govtool.module("M_car", [f"Sold_{dealer}" for dealer in DEALERS], outputs=["Sold"])
def deliver(*sold: Any) -> Any:
    """The car that was bought."""
    return united(sold)


def workflow(car_id: str = "string") -> Workflow:
    """The workflow of Figure 1 of the paper."""
    dealers = {dealer: dealer_module(dealer, car_id) for dealer in DEALERS}
    nodes: dict[str, Module] = {"and": fan_out, "agg": aggregate, "choice": choose, "xor": decide, "car": deliver}
    edges: list[tuple[str, str, str]] = [("agg", "xor", "BestBid"), ("choice", "xor", "Choice")]
    for dealer, each in dealers.items():
        bid, buy = f"bid{dealer}", f"buy{dealer}"
        nodes.update({bid: each, buy: each})
        edges += [
            ("and", bid, "Orders"),
            (bid, "agg", f"Bids_{dealer}"),
            (bid, "xor", f"Bids_{dealer}"),
            ("xor", buy, "Orders"),
            (buy, "car", f"Sold_{dealer}"),
        ]
    return Workflow("car", nodes, edges, keep={"agg": ["BestBid"]})


# ---- the family -----------------------------------------------------------------------------------------------------


class CarFamily:
    """See ``Family``."""

    name = "car"

    def flow(self, spec: Spec) -> Workflow:
        """The workflow, for the ids of this spec's cars."""
        return workflow("bigint" if _numeric(spec) else "string")

    def write(self, spec: Spec, folder: Path, without: Collection[str] = ()) -> None:
        """Write inputs and initial state, but for the rows of some tokens."""
        import pyarrow as pa

        text, number, small = pa.string(), pa.int64(), pa.int32()
        car_id = number if _numeric(spec) else text
        for dealer, own in spec["dealers"].items():
            for name, columns, rows in (
                ("Cars", {"CarId": car_id, "Model": text}, own["cars"]),
                ("SoldCars", {"CarId": car_id, "BidId": text}, own.get("sold", ())),
                ("History", {"UserId": text, "BidId": text, "Model": text, "Amount": number}, own.get("history", ())),
            ):
                kept = [row[1:] for row in rows if row[0] not in without]
                write_parquet(folder / "state" / f"M_dealer{dealer}.{name}.parquet", columns, kept)
        for execution, given in enumerate(spec["execs"], 1):
            place = folder / str(execution)
            request = [given["request"][1:]] if given["request"][0] not in without else []
            choice = [given["choice"][1:]] if given["choice"][0] not in without else []
            write_parquet(place / "Requests.parquet", {"UserId": text, "BidId": text, "Model": text}, request)
            write_parquet(place / "Answer.parquet", {"BidId": text, "Reserve": number, "Accept": small}, choice)

    def records(self, spec: Spec) -> dict[str, list[str]]:
        """See ``Family``."""
        names = {"cars": "Cars", "sold": "SoldCars", "history": "History"}
        found = {
            f"state/M_dealer{dealer}.{relation}.parquet": [row[0] for row in own.get(name, ())]
            for dealer, own in spec["dealers"].items()
            for name, relation in names.items()
        }
        for execution, given in enumerate(spec["execs"], 1):
            found[f"{execution}/Requests.parquet"] = [given["request"][0]]
            found[f"{execution}/Answer.parquet"] = [given["choice"][0]]
        return found

    def rows(self, execution: int, relations: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[OutputRow]:
        """``BestBid`` by BidId, ``Sold`` by BidId, dealer and car."""
        best = [OutputRow(execution, "BestBid", (row["BidId"],), row["Amount"]) for row in relations["BestBid"]]
        sold = [
            OutputRow(execution, "Sold", (row["BidId"], row["Dealer"], row["CarId"]), row["Price"])
            for row in relations["Sold"]
        ]
        return [*best, *sold]

    def stops(self, rows: Sequence[OutputRow]) -> bool:
        """A run ends with a purchase."""
        return any(row.relation == "Sold" for row in rows)

    def by_hand(self, spark: Any, spec: Spec, inputs: Path, folder: Path) -> CarByHand:
        """Plain PySpark."""
        return CarByHand(spark, inputs, folder)


def _numeric(spec: Spec) -> bool:
    """Whether ids of cars are numbers."""
    ids: Iterable[Any] = (row[1] for own in spec["dealers"].values() for row in own["cars"])
    return all(isinstance(each, int) and not isinstance(each, bool) for each in ids)


class CarByHand:
    """The program without modules: what is needed later is written, and state is appended to."""

    def __init__(self, spark: Any, inputs: Path, folder: Path) -> None:
        self._spark = spark
        self._inputs = inputs
        self._folder = folder
        for file in sorted((inputs / "state").glob("*.parquet")):
            target = folder / "state" / file.stem
            target.mkdir(parents=True)
            (target / "part-0.parquet").write_bytes(file.read_bytes())

    def __call__(self, execution: int) -> dict[str, list[dict[str, Any]]]:
        """Run one execution."""
        requests = self._spark.read.parquet(str(self._inputs / str(execution) / "Requests.parquet"))
        place = self._folder / str(execution)
        bids = []
        for dealer in DEALERS:
            own = bids_of(
                dealer,
                requests,
                self._state(dealer, "Cars"),
                self._state(dealer, "SoldCars"),
                self._state(dealer, "History"),
            )
            bids.append(self._written(own, place / f"bids{dealer}"))
            self._append(bids[-1].select("UserId", "BidId", "Model", "Amount"), dealer, "History")
        best = self._written(best_of(united(bids)), place / "best")
        choice = self._spark.read.parquet(str(self._inputs / str(execution) / "Answer.parquet"))
        orders = self._written(purchases_of(united(bids), best, choice), place / "orders")
        sold = []
        for dealer in DEALERS:
            sales = sales_of(
                orders.where(orders.Dealer == dealer), self._state(dealer, "Cars"), self._state(dealer, "SoldCars")
            )
            sold.append(self._written(sales, place / f"sold{dealer}"))
            self._append(sold[-1].select("CarId", "BidId"), dealer, "SoldCars")
        self._written(united(sold), place / "sold")
        return {"BestBid": read_parquet(place / "best"), "Sold": read_parquet(place / "sold")}

    def _state(self, dealer: int, name: str) -> Any:
        return self._spark.read.parquet(str(self._folder / "state" / f"M_dealer{dealer}.{name}"))

    def _append(self, rows: Any, dealer: int, name: str) -> None:
        rows.write.mode("append").parquet(str(self._folder / "state" / f"M_dealer{dealer}.{name}"))

    def _written(self, frame: Any, place: Path) -> Any:
        frame.write.parquet(str(place))
        return self._spark.read.parquet(str(place))
