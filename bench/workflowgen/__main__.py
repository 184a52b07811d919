"""``python -m bench.workflowgen car|arctic|figures|unknown``: see the package."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.workflowgen.arctic import SELECTIVITIES, TOPOLOGIES, ArcticFamily
from bench.workflowgen.arms import ARMS
from bench.workflowgen.car import CarFamily
from bench.workflowgen.family import Family
from bench.workflowgen.generate import arctic_spec, car_spec
from bench.workflowgen.measure import measure
from bench.workflowgen.session import start_session
from bench.workflowgen.spec import SpecError, answer, read_deletions


def main(arguments: list[str] | None = None) -> int:
    """The command line; the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["figures"]:  # these two have options of their own
        from bench.workflowgen.figures import main as figures

        return figures(words[1:])
    if words[:1] == ["unknown"]:
        from bench.workflowgen.unknown import main as unknown

        return unknown(words[1:])
    options = _parser().parse_args(words)
    family: Family = CarFamily() if options.family == "car" else ArcticFamily()
    try:
        with tempfile.TemporaryDirectory(prefix="workflowgen-") as name:
            found = _run(family, options, Path(name))
    except (SpecError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.format == "json":
        print(json.dumps(found, indent=1))
    else:
        _show(found)
    return 0


def _run(family: Family, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    arms = [name for name in options.arms.split(",") if name]
    strange = [name for name in arms if name not in ARMS]
    if strange or not arms:
        raise SpecError(f"no arm {', '.join(strange)}; there are {', '.join(ARMS)}")
    spec = json.loads(options.spec.read_text(encoding="utf-8")) if options.spec else _generated(options)
    deletions = list(read_deletions(options.delete)) if options.delete else []
    if deletions and "untracked" not in arms:
        arms.append("untracked")  # its invocations are what a deletion need not evaluate again
    from govtool.store import Store

    store = Store.init(str(folder / "store")).uri
    spark = start_session(options.master, options.partitions)
    try:
        if options.spec or deletions:
            return answer(family, spec, deletions, spark, folder, arms, store)
        found = measure(family, spec, spark, folder, arms, options.runs, store)
    finally:
        spark.stop()
    setting = {"family": family.name, "master": options.master, "partitions": options.partitions}
    names = ("cars", "prior") if family.name == "car" else ("stations", "topology", "fan", "selectivity", "prior")
    return {**setting, **{name: getattr(options, name) for name in names}, **found}


def _generated(options: argparse.Namespace) -> dict[str, Any]:
    if options.family == "car":
        return car_spec(options.cars, options.prior, options.executions)
    return arctic_spec(
        options.stations, options.topology, options.fan, options.selectivity, options.executions, options.prior
    )


def _show(found: dict[str, Any]) -> None:
    for name, value in found.items():
        print(f"{name}: {json.dumps(value)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.workflowgen", description=__doc__)
    parser.add_argument("family", choices=("car", "arctic"))
    parser.add_argument("--spec", type=Path, metavar="F.json", help="run this instead of generated data")
    parser.add_argument("--delete", type=Path, metavar="F.jsonl", help="lists of tokens, one a line")
    parser.add_argument("--arms", default=",".join(ARMS), help="default: all, their outputs compared")
    parser.add_argument("--format", choices=("json", "text"), default="text")
    parser.add_argument("--runs", type=int, default=3, help="measured runs (default: 3)")
    parser.add_argument("--executions", type=int, default=5, help="of each run (default: 5)")
    parser.add_argument("--prior", type=int, default=10, help="executions that went before (default: 10)")
    parser.add_argument("--cars", type=int, default=20_000, help="car: of all dealers together")
    parser.add_argument("--stations", type=int, default=24, help="arctic (default: 24)")
    parser.add_argument("--topology", choices=TOPOLOGIES, default="parallel")
    parser.add_argument("--fan", type=int, default=6, help="arctic, dense: stations of a layer")
    parser.add_argument("--selectivity", choices=SELECTIVITIES, default="month")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--partitions", type=int, default=2, help="of shuffles")
    return parser


if __name__ == "__main__":
    sys.exit(main())
