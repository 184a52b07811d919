"""The page's section on WorkflowGen: rows of settings that were not measured again are kept, with their commit."""

from __future__ import annotations

from bench.page import page_sections
from bench.workflowgen.report import section

OLD = """## WorkflowGen

| setting | runs | tracked |
|---|---:|---:|
| 5(a), 20,000 cars, after 10 | 1 | 2 | **1.14** | 1.11 | 2.59 | 1.94 | 1.51 | 8.1 |

| shuffle partitions | untracked, local[1] / local[2] | tracked |
|---|---:|---:|
| 1 | 1.68 | 1.74 |

*AMD EPYC, 2 cores; load 2.0; govtool at 7c09642f (parallel) and eddbb9c2 (the others).*
"""


def arm(seconds):
    return {
        "wall": [seconds] * 2, "cpu": [seconds] * 2, "finish": (0.5, 0.5), "build": (1, 1), "nodes": 5, "rows": 1
    }  # fmt: skip


def measured(commit, **arms):
    return {"runs": [{"load": 1.0, "commit": commit, "arms": {name: arm(each) for name, each in arms.items()}}, {}]}


def rows(text):
    return {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| ")}


def test_rows_without_new_results_are_kept_with_their_commit():
    new = {"a/100": measured("abc1234", hand=4, untracked=8, tracked=9)}
    found = rows(section(new, OLD))
    origin = "7c09642f (parallel) and eddbb9c2 (the others) |"
    assert found["5(a), 20,000 cars, after 10"].startswith("| 5(a), 20,000 cars, after 10 | 1 | 2 | **1.14** |")
    assert found["5(a), 20,000 cars, after 10"].endswith(origin)
    assert found["1"] == f"| 1 | 1.68 | 1.74 | {origin}"
    assert found["5(a), 20,000 cars, after 100"].endswith("| abc1234 |")
    assert list(found)[1:3] == ["5(a), 20,000 cars, after 10", "5(a), 20,000 cars, after 100"]


def test_a_row_that_is_measured_again_takes_the_place_of_the_kept_one():
    new = {
        "a/10": measured("abc1234", hand=4, untracked=8, tracked=8),
        "c/1/1": measured("abc1234", untracked=8, tracked=9),
        "c/2/1": measured("abc1234", untracked=4, tracked=6),
    }
    text = section(new, OLD)
    found = rows(text)
    assert "| **1.00** |" in found["5(a), 20,000 cars, after 10"]
    assert found["1"] == "| 1 | 2.00 | 1.50 | abc1234 |"
    assert "7c09642f" not in text
    assert "met by 1 of 1 settings" in text
    assert section(new, text) == text


def test_the_page_as_it_stands_loses_nothing():
    before = page_sections()["workflowgen"]
    assert rows(section({}, before)) == rows(before)
