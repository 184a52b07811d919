"""A private PostgreSQL of Debian's packages: in a temporary folder, on a unix socket, gone when it is closed."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

FIELD, RECORD = "\x1f", "\x1e"


class Missing(Exception):
    """The programs of PostgreSQL are not installed, or may not be run here."""


class Refused(Exception):
    """PostgreSQL answered with an error. Its text is the first line of the answer."""


def binaries() -> Path:
    """The folder of the newest ``initdb`` and ``postgres``.

    Raises:
        Missing: There are none.
    """
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if found:
        return max(found, key=lambda path: int(re.sub(r"\D.*", "", path.parent.name) or 0))
    on_path = shutil.which("initdb")
    if on_path is None:
        raise Missing("PostgreSQL is not installed: apt-get install postgresql")
    return Path(on_path).resolve().parent


class Cluster:
    """A running server with one superuser, ``postgres``, for a ``with`` statement.

    PostgreSQL refuses to run as root; root runs it as ``postgres``, or else as ``nobody``.
    """

    def __init__(self) -> None:
        self.bin = binaries()
        self.folder = Path(tempfile.mkdtemp(prefix="govtool-pg-", dir="/tmp"))  # a socket's path must be short
        self._user: str | None = None
        if os.geteuid() == 0:
            self._user = next((name for name in ("postgres", "nobody") if _exists(name)), None)
            if self._user is None:
                raise Missing("PostgreSQL does not run as root, and there is no other user")
            entry = pwd.getpwnam(self._user)
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Cluster:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The address for clients: ``postgresql://postgres@/postgres?host=/tmp/…``."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """The address of one database."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def _start(self) -> None:
        data = self.folder / "data"
        # C.UTF-8 exists wherever Debian does; nothing has to survive a crash.
        made = subprocess.run(
            [self.bin / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"],
            user=self._user,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise Missing(f"initdb failed: {made.stderr.strip()}")
        settings = ["fsync=off", "max_connections=20", "shared_buffers=16MB", "autovacuum=off"]
        command: list[str | Path] = [
            self.bin / "postgres",
            "-D",
            data,
            "-k",
            self.folder,
            "-h",
            "",
            *(f"-c{item}" for item in settings),
        ]
        log = self.folder / "log"
        with log.open("wb") as out:
            self._server = subprocess.Popen(command, user=self._user, cwd=self.folder, stdout=out, stderr=out)
        for _ in range(600):
            if self._server.poll() is not None:
                raise Missing(f"postgres did not start: {log.read_text(errors='replace').strip()}")
            ready: list[str | Path] = [self.bin / "pg_isready", "-q", "-h", self.folder]
            if subprocess.run(ready, check=False).returncode == 0:
                return
            time.sleep(0.05)
        raise Missing("postgres did not become ready")

    def close(self) -> None:
        """Stop the server and remove its folder."""
        if self._server is not None:
            self._server.terminate()
            try:
                self._server.wait(20)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
            self._server = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, sql: str, database: str = "postgres") -> list[list[str]]:
        """Run SQL in one session and return the rows of its answers; NULL is the empty text.

        Raises:
            Refused: A statement failed; those after it did not run.
        """
        command: list[str | Path] = [
            self.bin / "psql",
            "-XqAt",
            "-v",
            "ON_ERROR_STOP=1",
            "-F",
            FIELD,
            "-R",
            RECORD,
            "-h",
            self.folder,
        ]
        environment = {**os.environ, "PGOPTIONS": "-c client_min_messages=warning", "PGCLIENTENCODING": "UTF8"}
        done = subprocess.run(
            [*command, "-U", "postgres", "-d", database, "-f", "-"],
            input=sql,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            found = re.search(r"ERROR:\s*(.*)", done.stderr)
            raise Refused(found[1] if found else done.stderr.strip())
        text = done.stdout.rstrip("\n")
        return [record.split(FIELD) for record in text.split(RECORD)] if text else []

    def attempt(self, statements: list[str]) -> list[str | None]:
        """Run statements each on its own, in one session; the error of each, None where it succeeded."""
        mark = "@@done@@"
        script = [r"\set ON_ERROR_STOP 0"]
        for number, statement in enumerate(statements):
            text = statement.rstrip().rstrip(";")
            script.append(f"{text}\n;\n\\if :ERROR\n\\echo {mark} {number} :LAST_ERROR_MESSAGE\n\\endif")
        answer = self.run("\n".join(script))
        errors: list[str | None] = [None] * len(statements)
        for line in "\n".join(RECORD.join(FIELD.join(row) for row in answer).split(RECORD)).split("\n"):
            if line.startswith(mark):
                _, position, text = line.split(" ", 2)
                errors[int(position)] = text
        return errors


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
