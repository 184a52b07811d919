"""Functions of the user: identities that follow the source and what it refers to, and functions found again by them."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import sysconfig
import zipfile
import zipimport

import pytest

from govtool.records.execute.functions import find
from govtool.records.plan.expressions import UdfReference
from govtool.spark.live.records.function_source import identity, source_digest

SCRIPT = """
import os
import math as m

RATE = 1.5
RATES = {"a": [1, 2]}
print("the body of the script ran")
os.environ["GOVTOOL_TEST_BODY_RAN"] = "1"


def helper(x):
    return x * RATE


def priced(x):
    # a comment
    return helper(x) + m.floor(RATES["a"][0])


def other(x):
    return x
"""


def module_of(path, name="job"):
    spec = importlib.util.spec_from_file_location(name, path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def reference(function):
    found = identity(function)
    return UdfReference(found["module"], found["qualname"], found["digest"], "python", found.get("reason", ""))


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "job.py"
    path.write_text(SCRIPT, encoding="utf-8")
    yield path
    sys.modules.pop("job", None)


def test_a_function_is_found_again_and_the_script_does_not_run(script, monkeypatch, capsys):
    wanted = reference(module_of(script).priced)
    capsys.readouterr()
    monkeypatch.delenv("GOVTOOL_TEST_BODY_RAN", raising=False)
    found = find(wanted, [script])
    assert found is not None
    assert found(2) == 4.0
    assert capsys.readouterr().out == ""
    assert "GOVTOOL_TEST_BODY_RAN" not in __import__("os").environ


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("    # a comment\n", "\n\n", True),
        ("import os\n", "import os\nimport sys\n\n\n", True),
        ("def other(x):\n    return x", "def other(x):\n    return -x", True),
        ("helper(x) + m", "helper(x) - m", False),
        ("x * RATE", "x + RATE", False),
        ("RATE = 1.5", "RATE = 1.6", False),
        ('{"a": [1, 2]}', '{"a": [3, 2]}', False),
        ("def priced", "def prized", False),
    ],
)
def test_only_what_the_function_does_counts(script, old, new, same):
    wanted = reference(module_of(script).priced)
    assert old in SCRIPT
    script.write_text(SCRIPT.replace(old, new), encoding="utf-8")
    __import__("linecache").clearcache()
    assert (find(wanted, [script]) is not None) == same


DECORATED = """
import functools

LIMIT = 3


def plus(function):
    @functools.wraps(function)
    def wrapper(x):
        return function(x) + 1

    return wrapper


@plus
def decorated(x):
    return x * 2


@functools.lru_cache
def cached(x):
    return x * 2


def limited(x, most=LIMIT):
    return min(x, most)
"""


def test_a_decorator_is_part_of_a_function(script):
    """Without it the function would be found again, and give other values than in the run."""
    script.write_text(DECORATED, encoding="utf-8")
    made = module_of(script)
    assert find(reference(made.decorated), [script]) is None
    assert find(reference(made.cached), [script])(4) == 8


def test_the_values_of_defaults_count(script):
    script.write_text(DECORATED, encoding="utf-8")
    wanted = reference(module_of(script).limited)
    assert find(wanted, [script])(9) == 3
    script.write_text(DECORATED.replace("LIMIT = 3", "LIMIT = 4"), encoding="utf-8")
    __import__("linecache").clearcache()
    assert find(wanted, [script]) is None


def test_no_digest_without_plain_data():
    connection = object()

    def reads(x):
        return (connection, x)

    assert identity(reads)["digest"] == ""
    assert identity(reads)["reason"] == "it refers to connection, which is no plain data"
    assert identity(len)["digest"] == ""
    assert identity(print)["reason"]


def test_closures_count():
    def made(n):
        return lambda x: x + n

    one, two = made(1), made(2)
    assert source_digest(one) != source_digest(two)
    assert source_digest(one) == source_digest(made(1))


def test_two_lambdas_of_one_line_have_no_digest():
    pair = (lambda x: x + 1, lambda x: x + 2)
    with pytest.raises(ValueError, match="several functions"):
        source_digest(pair[0])


def test_a_function_that_calls_itself():
    def down(x):
        return 0 if x == 0 else down(x - 1)

    assert len(source_digest(down)) == 64


def test_a_path_or_a_name_from_elsewhere_finds_nothing(script):
    wanted = reference(module_of(script).priced)
    assert find(UdfReference("__main__", "os.system", wanted.digest, "python"), [script]) is None
    assert find(UdfReference("os", "system", wanted.digest, "python"), [script]) is None
    assert find(UdfReference("job", "priced", "", "python"), [script]) is None


def changes_with(folder, monkeypatch, script, change):
    """Whether the function ``f`` of a script is found again before a change, and after it, as a new process would."""
    path = folder / "job.py"
    path.write_text(script, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    own = set(sys.modules)
    wanted = reference(module_of(path).f)

    def forget():
        importlib.invalidate_caches()
        sys.path_importer_cache.clear()
        zipimport._zip_directory_cache.clear()
        for name in set(sys.modules) - own:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                sys.modules.pop(name)

    assert wanted.digest, wanted.reason
    try:
        forget()
        before = find(wanted, [path])
        change()
        forget()
        return before is not None, find(wanted, [path]) is not None
    finally:
        forget()


@pytest.mark.parametrize(
    "script",
    [
        "def f(x):\n    import helpers\n    return helpers.g(x)\n",
        "def f(x):\n    from helpers import g\n    return g(x)\n",
        "def f(x):\n    from tools.inner import deep\n    return deep(x)\n",
        "import tools\n\ndef f(x):\n    return tools.use(x)\n",
        "from tools.users import used\n\ndef f(x):\n    return used(x)\n",
    ],
    ids=["import within", "from within", "a package within", "a package", "an instance of another module"],
)
def test_modules_that_functions_import_count_however_they_do(tmp_path, monkeypatch, script):
    (tmp_path / "helpers.py").write_text("def g(x):\n    return x\n", encoding="utf-8")
    package = tmp_path / "tools"
    package.mkdir()
    (package / "__init__.py").write_text("def use(x):\n    from .inner import deep\n    return deep(x)\n", "utf-8")
    (package / "inner.py").write_text("import helpers\n\ndef deep(x):\n    return helpers.g(x)\n", encoding="utf-8")
    (package / "made.py").write_text("import types\n\nLIMITS = types.SimpleNamespace(most=1)\n", encoding="utf-8")
    (package / "users.py").write_text("from .made import LIMITS\n\ndef used(x):\n    return x + LIMITS.most\n", "utf-8")
    changed = package / "made.py" if "users" in script else tmp_path / "helpers.py"

    def change():
        text = changed.read_text(encoding="utf-8")
        changed.write_text(text.replace("return x", "return x + 1").replace("most=1", "most=22"), encoding="utf-8")

    assert changes_with(tmp_path, monkeypatch, script, change) == (True, False)


def test_a_module_within_an_archive_counts(tmp_path, monkeypatch):
    def archived(text):
        with zipfile.ZipFile(tmp_path / "deps.zip", "w") as archive:
            archive.writestr("zipped.py", text)

    archived("def g(x):\n    return x\n")
    monkeypatch.syspath_prepend(str(tmp_path / "deps.zip"))
    script = "import zipped\n\ndef f(x):\n    return zipped.g(x)\n"
    changed = "def g(x):\n    return x + 12345\n"

    assert changes_with(tmp_path, monkeypatch, script, lambda: archived(changed)) == (True, False)


def test_modules_below_the_prefix_of_python_are_the_users_unless_they_are_installed(tmp_path, monkeypatch):
    paths = {**sysconfig.get_paths(), "data": str(tmp_path), "scripts": str(tmp_path)}
    monkeypatch.setattr(sysconfig, "get_paths", lambda: paths)
    (tmp_path / "helpers.py").write_text("def g(x):\n    return x\n", encoding="utf-8")

    def change():
        (tmp_path / "helpers.py").write_text("def g(x):\n    return -x\n", encoding="utf-8")

    script = "import helpers\n\ndef f(x):\n    return helpers.g(x)\n"
    assert changes_with(tmp_path, monkeypatch, script, change) == (True, False)
