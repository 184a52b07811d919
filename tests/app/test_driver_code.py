"""Which writes hang on what a program collected, by its code."""

from __future__ import annotations

import driver_code_cases
import pytest

from govtool.app.workflow_runs.programs.driver_code import UNKNOWN, HangingWrites, hanging_writes

BEGIN = """
from pyspark.sql import SparkSession, functions as f
import checks, functools, sys
spark = SparkSession.builder.getOrCreate()
df = spark.read.parquet("in/x")
"""
NONE, ANY = "", "every"
CASES = {
    "n = df.count()\nprint(n)\ndf.write.parquet('out/a')": NONE,
    "def main():\n  print(df.count())\n  df.write.parquet('a')\nif __name__ == '__main__':\n  main()": NONE,
    "for i in range(3):\n  df = df.where('x > 1')\n  print(df.count())\ndf.write.parquet('out/a')": NONE,
    "print(df.count())\nc = df.groupBy('k').count()\nif 1:\n  c.write.parquet('out/a')": NONE,
    "print(df.count())\nc = df.agg(f.count('x'), f.max('y'))\nif 1:\n  c.write.parquet('out/a')": NONE,
    "print(df.count())\nfunctools.reduce(lambda a, b: a.union(b), [df, df]).write.parquet('out/a')": NONE,
    "def w(d, p):\n  d.write.parquet(p)\nprint(df.count())\nw(df, 'out/a')": NONE,
    "try:\n  print(df.count())\n  df.write.parquet('out/a')\nexcept Exception:\n  raise": NONE,
    "df.show()\ndf.write.parquet('out/a')": NONE,
    "if df.count() > 3:\n  df.write.parquet('out/a')\ndf.write.parquet('out/b')": "a",
    "ok = False\nif df.count() > 1: ok = True\nif ok: df.write.saveAsTable('db.a')\ndf.write.saveAsTable('db.b')": "a",
    "OUT = 'out/a'\nif df.isEmpty():\n  pass\nelse:\n  df.write.mode('append').save(OUT)\ndf.write.parquet('b')": "a",
    "def main():\n  df.write.parquet('b')\n  if df.isEmpty():\n    return\n  df.write.parquet('a')\nmain()": "a",
    "n = df.count()\nd = df.where(f.col('x') > n / 2)\nd.write.parquet('a')\ndf.write.parquet('b')": "a",
    "n = df.count()\nspark.sql(f'select * from t where x > {n}').write.parquet('a')\ndf.write.parquet('b')": "a",
    "d = df\nwhile True:\n  d = d.where('x > 1')\n  if d.count() < 3: break\nd.write.parquet('a')\ndf.write.parquet('b')": "a",
    "(df if df.count() > 1 else df.limit(1)).write.parquet('a')\ndf.write.parquet('b')": "a",
    "df.count() > 1 and df.write.parquet('a')\ndf.write.parquet('b')": "a",
    "try:\n  x = df.first()[0]\nexcept TypeError:\n  df.write.parquet('a')\ndf.write.parquet('b')": "a",
    "m = spark.createDataFrame([(df.count(),)])\nm.write.saveAsTable('db.a')\ndf.write.saveAsTable('db.b')": "a",
    "def size(d):\n  return d.count()\nif size(df) > 1: df.write.parquet('a')\ndf.write.parquet('b')": "a",
    "xs = []\nxs.append(df.count())\nif xs[0] > 1: df.writeTo('db.a').append()\ndf.write.parquet('b')": "a",
    "def w(r):\n  df.write.parquet('a')\nlist(map(w, df.collect()))\ndf.write.parquet('b')": "a",
    "[df.where(r[0]).write.parquet('a') for r in df.collect()]\ndf.write.parquet('b')": "a",
    "match df.count():\n  case 3: df.write.parquet('a')\ndf.write.parquet('b')": "a",
    "class J:\n  def run(self):\n    self.n = df.count()\n    self.go()\n  def go(self):\n"
    "    if self.n > 1: df.write.parquet('a')\n    df.write.parquet('b')": "a",
    "if getattr(df, 'count')() > 1: df.write.parquet('a')\ndf.write.parquet('b')": "a",
    "if df.count() == 0:\n  sys.exit(0)\ndf.write.parquet('a')": ANY,
    "assert df.count() > 1\ndf.write.parquet('a')": ANY,
    "if df.count() == 0: raise ValueError('none')\ndf.write.parquet('a')": ANY,
    "for r in df.collect():\n  df.where(r.d).write.parquet(f'out/{r.d}')": ANY,
    "def w(d, p):\n  d.write.parquet(p)\nif df.count() > 1:\n  w(df, 'out/a')\ndf.write.parquet('b')": ANY,
    "if checks.validate(df):\n  spark.sql('insert into t select 1')": ANY,
    "n = df.count()\neval('1')": ANY,
    "df.write.parquet('a')": ANY,  # rows were collected, and the code does not show where
    "if (": ANY,
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES.items(), ids=range(len(CASES)))
def test_writes_that_hang_on_collected_rows_are_found(text, expected):
    found = hanging_writes([BEGIN + text])
    assert found.is_any == (expected == ANY)
    if expected != ANY:
        assert [name for name in ("a", "b") if found.has(f"file:///d/out/{name}")] == list(expected)


def test_files_of_a_program_are_one_program():
    job = "from helpers import write\nif spark.table('t').count() > 1:\n    write(spark.table('t'))\n"
    assert hanging_writes([job, "def write(d):\n    d.write.parquet('out/a')\n"]) == HangingWrites(
        frozenset({frozenset({"a"})})
    )
    assert hanging_writes(["x = 1"]) == UNKNOWN


def test_targets_that_were_not_written():
    found = hanging_writes([BEGIN + "if df.count(): df.write.parquet('o/a')\nelse: df.write.saveAsTable('db.b')"])
    assert found.not_among(["file:///o/c"]) == ["a", "db.b"]
    assert found.not_among(["file:///o/a", "file:///warehouse/b"]) == []


@pytest.mark.parametrize("name", driver_code_cases.HANGING)
def test_what_hangs_on_collected_rows_by_a_detour_is_found(name):
    text, expected = driver_code_cases.HANGING[name]
    found = hanging_writes([driver_code_cases.BEGIN + text])
    assert found.is_any == (expected == driver_code_cases.ANY)
    if not found.is_any:
        assert [end for end in ("a", "b") if found.has(f"file:///d/out/{end}")] == list(expected)


@pytest.mark.parametrize("name", driver_code_cases.SHOWN)
def test_programs_that_only_show_what_they_collect(name):
    assert hanging_writes([driver_code_cases.BEGIN + driver_code_cases.SHOWN[name]]) == HangingWrites()
