"""What is published on Maven Central and tested with: each thing with the newest Spark that it has a jar for.

Jars come over HTTPS into ``build/maven/jars`` and are used only if their SHA-256 is the one written here. As a script it
is what ``scripts/test-maven`` asks: ``reachable`` (exit code 0 or 1), ``sparks`` (the versions of pyspark, a line each).
"""

from __future__ import annotations

import hashlib
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

CENTRAL = "https://repo1.maven.org/maven2"
CACHE = Path(__file__).parents[2] / "build" / "maven" / "jars"
SPARKS = {"delta": "4.2.1", "iceberg": "4.1.4", "openlineage": "4.2.1"}
"""The version of pyspark that is tested with; OpenLineage's listener goes with any of them."""
JARS = {
    "delta": {
        "io.delta:delta-spark_4.2_2.13:4.4.0": "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
        "io.delta:delta-storage:4.4.0": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
        "io.delta:delta-kernel-api:4.4.0": "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
        "io.delta:delta-kernel-defaults:4.4.0": "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
        "io.delta:delta-kernel-unitycatalog:4.4.0": "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
        "io.unitycatalog:unitycatalog-client:0.6.0": "48257499a86b801a3e2372cec55ac226ca1c1c7eabe5c118e7302f29a1fdbc19",
    },
    "iceberg": {
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0": "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82"
    },
    "openlineage": {
        "io.openlineage:openlineage-spark_2.13:1.53.0": "5d84b0ae7e72909b5aae7ed87df878bf06b28d9ac3005765c3529d0a66dbae6f"
    },
}
"""Coordinates, group:artifact:version, with the SHA-256 of the jar; what Spark has itself is left out."""
TIMEOUT = 60


class Unreachable(Exception):
    """There is no Maven Central from here."""


def repository() -> str:
    """The repository's URL: Maven Central's, or that of a mirror in ``MAVEN_REPOSITORY``."""
    return (os.environ.get("MAVEN_REPOSITORY") or CENTRAL).rstrip("/")


def paths(name: str) -> list[Path]:
    """The jars of a thing, fetched where they are not yet here.

    Raises:
        Unreachable: There is no connection to the repository.
        ValueError: A jar is not the one that it should be.
    """
    return [fetched(coordinate, digest) for coordinate, digest in JARS[name].items()]


def fetched(coordinate: str, digest: str) -> Path:
    """One jar: from the cache, or else from the repository; see `paths`."""
    group, artifact, version = coordinate.split(":")
    file = CACHE / f"{artifact}-{version}.jar"
    if file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == digest:
        return file
    url = f"{repository()}/{group.replace('.', '/')}/{artifact}/{version}/{file.name}"
    data = _read(url)
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise ValueError(f"{url} has the SHA-256 {found}, not {digest}")
    CACHE.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(file)
    return file


def _read(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:  # https, or what the user named
            return answer.read()
    except OSError as error:
        if isinstance(error, urllib.error.HTTPError) and error.code == 404:
            raise  # it answers: there is no such jar, which is an error of ours
        raise Unreachable(f"{repository()} cannot be reached: {getattr(error, 'reason', error)}") from error


def is_reachable() -> bool:
    """Whether the repository answers at all, or all jars are here."""
    try:
        for name in JARS:
            for coordinate in JARS[name]:
                group, artifact, version = coordinate.split(":")
                if not (CACHE / f"{artifact}-{version}.jar").is_file():
                    _read(f"{repository()}/{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.pom")
                    return True
    except Unreachable as error:
        print(error, file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    if sys.argv[1:] == ["sparks"]:
        print("\n".join(dict.fromkeys(SPARKS.values())))
    elif sys.argv[1:] == ["reachable"]:
        sys.exit(not is_reachable())
    else:
        sys.exit(__doc__)
