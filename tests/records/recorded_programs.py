"""Recorded programs made by hand: actions over Parquet files, and what a run again says of answers about deletions."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
from recorded import Warehouse

from govtool.model.run import Software
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import Break, Plan, Write
from govtool.records.plan.types import LONG
from govtool.store import Store

VIEWS = [("ann", 1, 10), ("ann", 2, 20), ("bob", 1, 30), ("cid", 2, 5), ("bob", 3, 7)]
USERS = [("ann", "de"), ("bob", "fr"), ("cid", "de")]


class Program:
    """A warehouse whose jobs are the actions of one application; writes may replace what is there."""

    def __init__(self, folder, views=VIEWS, users=USERS):
        folder.mkdir(parents=True, exist_ok=True)
        self.application = "app-1"
        self.warehouse = Warehouse(folder, Store.init(str(folder / ".govtool")))
        columns = {"user": pa.string(), "page": pa.int64(), "spent": pa.int64()}
        self.warehouse.table("views", columns, views[:3], views[3:])
        self.warehouse.table("users", {"name": pa.string(), "land": pa.string()}, users)
        self.writes = []

    def then(self, application, script):
        """Another program over the same folders, and the same store."""
        made = object.__new__(Program)
        made.application, made.writes = application, []
        made.warehouse = Warehouse(self.warehouse.folder, self.warehouse.store, f"run:{script}")
        return made

    def write(self, sql, output, *inputs, mode="overwrite"):
        """An action: a query over folders, written into one."""
        number = len(self.writes)
        plan = self.warehouse.plan(sql, *inputs)  # before the files that it may replace are gone
        place = self.warehouse.folder / output
        old = sorted(place.glob("*.parquet")) if mode == "overwrite" and place.is_dir() else []
        made = self.warehouse.run(
            sql, output, *inputs, run=f"{self.application}/{number}", part=f"{self.application}-{number}"
        )
        for file in old:
            file.unlink()
        written = replace(made.plan, root=replace(made.plan.root, child=plan.root, mode=mode))
        files = self.warehouse.relation(place) if mode == "overwrite" else made.output_files
        self._mode(mode)
        self.writes.append(replace(made, plan=written, output_files=files))

    def collect(self, sql, *inputs):
        """An action whose rows go to the driver."""
        plan = self.warehouse.plan(sql, *inputs)
        made = self.warehouse.run(sql, "driver", *inputs, run=f"{self.application}/{len(self.writes)}")
        run = self.warehouse.runs[-1]
        self.warehouse.runs[-1] = replace(run, source=self.warehouse.source, outputs=())
        self.writes.append(replace(made, plan=plan, output="", output_files=None))

    def write_of_rdd(self, rows, output):
        """An action whose rows come from an RDD: the plan does not name what it read."""
        number = len(self.writes)
        source = self.warehouse.table(output, {"n": pa.int64()}, [(row,) for row in rows])
        root = Write(
            Break("rows of an RDD", (), (Attribute(1, "n", LONG),)), source.as_uri(), "parquet", "append", ("n",)
        )
        made = self.warehouse.run(f"SELECT n FROM {output}", f"{output}_of", output, run=f"{self.application}/{number}")
        self._mode("overwrite")
        self.writes.append(replace(made, plan=Plan(root, made.plan.session), breaks=("rows of an RDD",)))

    def code(self, text):
        """The text of the program, in a file beside its data."""
        (self.warehouse.folder / "job.py").write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        self.warehouse.runs[:] = [
            replace(each, software=(Software("script:job.py", digest),)) for each in self.warehouse.runs
        ]

    def _mode(self, mode):
        run = self.warehouse.runs[-1]
        made = tuple(replace(each, mode=mode) for each in run.outputs)
        self.warehouse.runs[-1] = replace(run, source=self.warehouse.source, outputs=made)

    def done(self):
        """Commit, and return the store's address."""
        self.warehouse.commit(*self.writes)
        return self.warehouse.store.uri

    def rows(self, name):
        """What is in a folder now."""
        files = sorted((self.warehouse.folder / name).glob("*.parquet"))
        return Counter(tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist())


STEPS = (
    ("SELECT user, page, spent FROM {a} WHERE spent > {n}", "rows"),
    ("SELECT DISTINCT user, page, spent FROM {a}", "rows"),
    ("SELECT user, max(page) AS page, sum(spent) AS spent FROM {a} GROUP BY user", "rows"),
    ("SELECT page AS user_page, user, page, spent FROM {a}", None),
    ("SELECT x.user, x.page, y.spent FROM {a} AS x JOIN {b} AS y ON x.user = y.user", "rows"),
    ("SELECT x.user, x.page, x.spent FROM {a} AS x WHERE NOT EXISTS (SELECT 1 FROM {b} AS y WHERE y.page = x.page + {n})",
     "rows"),
    ("SELECT user, page, spent FROM {a} UNION ALL SELECT user, page, spent FROM {b}", "rows"),
    ("SELECT user, count(*) AS page, min(spent) AS spent FROM {a} GROUP BY user HAVING count(*) > 1", "rows"),
)  # fmt: skip


def steps(draw, known=("views",), targets="tuw"):
    """Actions of a program: query, target, inputs, mode."""
    known = list(known)
    found = []
    for _ in range(draw.randint(3, 7)):
        text, kind = draw.choice(STEPS)
        if kind is None:
            continue
        target = draw.choice(targets)
        a, b = draw.choice(known), draw.choice(known)
        mode = "append" if draw.random() < 0.3 else "overwrite"
        if a == b and "{b}" in text and "AS x" not in text:
            continue
        found.append((text.format(a=a, b=b, n=draw.randint(0, 2)), target, tuple(dict.fromkeys((a, b))), mode))
        known = list(dict.fromkeys([*known, target]))
    return found


def contradictions(answer, after):
    """What a re-run does not confirm, by relation."""
    wrong = []
    for name, relation in answer.items():
        left = Counter(after(name))
        for row in relation["tuples"]:
            if row["status"] in ("kept", "recomputed"):
                value = tuple(row["after"] if row["status"] == "recomputed" else row["before"])
                if not left[value]:
                    wrong.append((name, row))
                left[value] -= 1
        unknown = any(row["status"] == "unknown" for row in relation["tuples"])
        gains = Counter(map(tuple, relation["gains"]))
        rest = +left - gains
        if rest and not unknown and not relation["gains_possible"]:
            wrong.append((name, dict(rest)))
    return wrong
