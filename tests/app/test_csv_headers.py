"""The headers of CSV inputs of workflows, as they are checked before Spark reads a row."""

from types import SimpleNamespace

import pytest

from govtool.app.workflow_runs.frames import _require_header
from govtool.errors import UsageError
from govtool.model.workflow_run import BoundaryRelation, RelationFile


def check(file, header: str) -> None:
    file.write_text(header + "\n1,2\n")
    relation = BoundaryRelation(str(file), "csv", "", (RelationFile(file.as_uri(), 1, 1),))
    field = SimpleNamespace(dataType=SimpleNamespace(simpleString=lambda: "bigint"))
    names = ["n", "m"]
    _require_header(
        relation, SimpleNamespace(names=names, fields=[SimpleNamespace(name=n, **vars(field)) for n in names]), "In"
    )


@pytest.mark.parametrize(
    "header", ["n,m", ' N ,"m"', "\ufeffn,m", "", "n" * 200_000, '"n', 'n,"' + "m" * 200_000 + '"']
)
def test_headers_that_are_right_or_that_only_spark_can_read_pass(tmp_path, header):
    check(tmp_path / "In.csv", header)


@pytest.mark.parametrize("header", ["m,n", "n", "n;m", "n,m,", '"n\nx",m', "n," * 5_000])
def test_other_headers_are_refused(tmp_path, header):
    with pytest.raises(UsageError, match=r"In in .* has the columns") as raised:
        check(tmp_path / "In.csv", header)
    assert len(str(raised.value)) < 2000
