"""The texts of an index by number: those of fragments, which stay with the executors, and those that the build adds."""

from __future__ import annotations

from collections.abc import Iterable

from govtool.app.versions.spark_index.frames import Frames


class Words:
    """Numbers of a few texts; what is new is numbered behind those of the fragments, as ``Strings`` does.

    Args:
        frames: With ``t``: texts with their numbers.
        count: The number of texts there.
    """

    def __init__(self, frames: Frames, count: int) -> None:
        self._frames = frames
        self._known: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self.end = count
        """The greatest number so far."""
        self.rows: list[tuple[int, str]] = []
        """New texts with their numbers."""

    def look_up(self, texts: Iterable[str]) -> None:
        """Look up the numbers of texts, all at once."""
        from pyspark.sql import functions as f

        wanted = sorted(set(texts) - self._known.keys())
        if wanted:
            found = self._frames["t"].where(f.col("text").isin(wanted)).collect()
            self._known |= {row["text"]: row["id"] for row in found}

    def texts(self, numbers: Iterable[int]) -> dict[int, str]:
        """The texts of numbers: of few."""
        from pyspark.sql import functions as f

        wanted = sorted(set(numbers) - self._texts.keys())
        if wanted:
            found = self._frames["t"].where(f.col("id").isin(wanted)).collect()
            self._texts |= {row["id"]: row["text"] for row in found}
        return self._texts

    def find(self, text: str) -> int | None:
        """The number of a text that was looked up; None if there is none."""
        return self._known.get(text)

    def know(self, number: int, text: str) -> None:
        """Take in a text that executors have numbered."""
        self._known[text] = number
        self._texts[number] = text

    def skip(self, count: int) -> None:
        """Leave numbers to texts that executors number."""
        self.end += count

    def add(self, text: str) -> int:
        """The number of a text that was looked up, a new one if there was none."""
        if text not in self._known:
            self.end += 1
            self.know(self.end, text)
            self.rows.append((self.end, text))
        return self._known[text]
