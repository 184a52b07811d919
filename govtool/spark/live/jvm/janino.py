"""Java classes of ours, compiled inside a session's JVM by Janino, the compiler that Spark carries."""

from __future__ import annotations

import os
import threading
from typing import Any

_COMPILING = threading.Lock()
"""Held while a class is compiled: the recorder's thread and that of a notebook may want it at once."""


def instance_in(gateway: Any, name: str) -> Any:
    """The one instance of a class of this folder within a JVM; it is compiled when first wanted.

    A second class of its name would not do: py4j remembers methods by the names of classes, and calls the first one's.

    Args:
        gateway: The gateway to the JVM.
        name: The class, whose source is ``name.java``.

    Raises:
        Py4JError: This JVM compiles nothing.
    """
    key = f"_govtool_{name}"
    with _COMPILING:
        known = vars(gateway).get(key)
        if known is None:
            known = _compiled(gateway, name)
            setattr(gateway, key, known)
    return known


def _compiled(gateway: Any, name: str) -> Any:
    jvm = gateway.jvm
    with open(os.path.join(os.path.dirname(__file__), f"{name}.java"), encoding="utf-8") as file:
        source = file.read()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(source)
    kind = compiler.getClassLoader().loadClass(name)
    no_types, nothing = gateway.new_array(jvm.java.lang.Class, 0), gateway.new_array(jvm.java.lang.Object, 0)
    return kind.getDeclaredConstructor(no_types).newInstance(nothing)
