"""A workload like that of PASS in "Making a Cloud Provenance-Aware" (TaPP 2009), and three architectures for it.

A compile, a Blast run and the Provenance Challenge workflow together, some 72,000 object versions: files, the processes
that read and wrote them, pipes between them. Processes carry their arguments and environment, which are what makes
records longer than 1 KB. Names, sizes and environments are made up; the shape is that of such runs. The architectures'
figures are computed from the workload by the paper's formulas and never adjusted to its printed tables.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

KB = 1024
_MESSAGE = 8 * KB


@dataclass(frozen=True, slots=True)
class Version:
    """One object version: what PASS records of it."""

    name: str
    """``file:kernel/fs/ext3_12.o_1``: kind, name, version."""
    inputs: tuple[str, ...]
    records: tuple[tuple[str, str], ...]
    """Attributes that are not ancestors: TYPE, NAME, ARGV, ENV, PID …"""
    data: int
    """Bytes of the file's data; 0 for processes and pipes."""

    @property
    def kind(self) -> str:
        """``file``, ``process`` or ``pipe``."""
        return self.name.split(":", 1)[0]

    def pairs(self) -> list[tuple[str, str]]:
        """All its records as attribute and value."""
        return [*self.records, *(("INPUT", name) for name in self.inputs)]


class _Maker:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.versions: list[Version] = []
        self._pid = 1000
        self._environments: dict[str, str] = {}

    def file(self, name: str, size: int, *inputs: str, version: int = 1) -> str:
        full = f"file:{name}_{version}"
        records = (("TYPE", "FILE"), ("NAME", f"/{name}"), ("INODE", str(self.rng.randrange(10**7))))
        self.versions.append(Version(full, inputs, records, size))
        return full

    def pipe(self, *inputs: str) -> str:
        full = f"pipe:{len(self.versions)}_1"
        self.versions.append(Version(full, inputs, (("TYPE", "PIPE"),), 0))
        return full

    def process(self, program: str, arguments: str, folder: str, *inputs: str) -> str:
        self._pid += self.rng.randrange(1, 4)
        full = f"process:{program}.{self._pid}_1"
        records = (
            ("TYPE", "PROC"),
            ("NAME", f"/usr/bin/{program}"),
            ("PID", str(self._pid)),
            ("EXECTIME", f"{1_200_000_000 + self._pid}.{self.rng.randrange(10**6):06d}"),
            ("ARGV", f"{program} {arguments}"),
            ("ENV", self._environment(folder)),
        )
        self.versions.append(Version(full, inputs, records, 0))
        return full

    def _environment(self, folder: str) -> str:
        if not self._environments:
            words = random.Random(1)
            common = [f"VAR_{i}=/opt/{''.join(words.choices('abcdefghijklmnop/:.-_', k=60))}" for i in range(45)]
            self._environments[""] = "\n".join(common)
        return f"{self._environments['']}\nPWD=/home/user/{folder}\nMAKELEVEL=2\n_={self._pid}"


def generate(seed: int = 7) -> list[Version]:
    """Object versions in the order in which they came to be: ancestors first."""
    maker = _Maker(seed)
    rng = maker.rng
    # A compile: sources and headers; for each source cc1, as and gcc with a pipe between; ld over folders.
    headers = [maker.file(f"kernel/include/h{i}.h", rng.randrange(500, 20_000)) for i in range(1500)]
    objects: list[str] = []
    for i in range(13_400):
        folder = f"kernel/d{i % 300}"
        source = maker.file(f"{folder}/s{i}.c", rng.randrange(4_000, 40_000))
        compiler = maker.process(
            "cc1", f"-quiet -O2 -nostdinc -Iinclude {folder}/s{i}.c -o -", folder, source, *rng.sample(headers, 12)
        )
        pipe = maker.pipe(compiler)
        assembler = maker.process("as", f"-Qy -o {folder}/s{i}.o", folder, pipe)
        objects.append(maker.file(f"{folder}/s{i}.o", rng.randrange(10_000, 80_000), assembler))
    built = []
    for i in range(300):
        linker = maker.process("ld", f"-r -o kernel/d{i}/built-in.o", f"kernel/d{i}", *objects[i::300])
        built.append(maker.file(f"kernel/d{i}/built-in.o", rng.randrange(50_000, 300_000), linker))
    maker.file("kernel/vmlinux", 40_000_000, maker.process("ld", "-o vmlinux", "kernel", *built))
    # Blast: a database formatted once, queries run against it in batches, their outputs merged.
    raw = maker.file("blast/nr.fasta", 60_000_000)
    formatter = maker.process("formatdb", "-i nr.fasta", "blast", raw)
    database = [maker.file(f"blast/nr.{part}", 12_000_000, formatter) for part in ("phr", "pin", "psq")]
    hits = []
    for i in range(600):
        query = maker.file(f"blast/query{i}.fa", rng.randrange(1_000, 5_000))
        run = maker.process("blast", f"-p blastp -d nr -i query{i}.fa -o hits{i}", "blast", query, *database)
        hits.append(maker.file(f"blast/hits{i}", rng.randrange(5_000, 80_000), run))
    for i in range(0, 600, 20):
        merged = maker.process("merge", f"hits{i}..{i + 19}", "blast", *hits[i : i + 20])
        maker.file(f"blast/report{i // 20}", rng.randrange(50_000, 200_000), merged)
    # The Provenance Challenge workflow: align four images, reslice, average, slice, convert; many times over.
    for n in range(50):
        folder = f"fmri/{n}"
        resliced = []
        reference = maker.file(f"{folder}/reference.img", 400_000)
        for i in range(4):
            anatomy = maker.file(f"{folder}/anatomy{i}.img", 300_000)
            warp = maker.file(
                f"{folder}/warp{i}.warp",
                2_000,
                maker.process("align_warp", f"anatomy{i}.img", folder, anatomy, reference),
            )
            reslice = maker.process("reslice", f"warp{i}.warp", folder, warp, anatomy)
            resliced.append(maker.file(f"{folder}/resliced{i}.img", 300_000, reslice))
        atlas = maker.file(f"{folder}/atlas.img", 400_000, maker.process("softmean", "atlas.img", folder, *resliced))
        for axis in "xyz":
            slicer = maker.process("slicer", f"atlas.img -{axis}", folder, atlas)
            image = maker.file(f"{folder}/atlas-{axis}.pgm", 60_000, slicer)
            maker.file(
                f"{folder}/atlas-{axis}.gif", 30_000, maker.process("convert", f"atlas-{axis}.pgm", folder, image)
            )
    return maker.versions


@dataclass(frozen=True, slots=True)
class Stored:
    """What an architecture stores for the provenance: bytes and operations beside those for the data."""

    size: int
    operations: int


def architectures(versions: list[Version]) -> dict[str, Stored]:
    """The three of the paper by its formulas (section 5).

    A keeps records as metadata of S3 objects, those over 1 KB in objects of their own. B keeps an item a version in
    SimpleDB, with an MD5 and a nonce for files, long values in S3. C writes everything to a queue first.
    """
    plain = long = items_size = 0
    files = 0
    for version in versions:
        files += version.kind == "file"
        items_size += len(version.name)
        for attribute, value in version.pairs():
            size = len(attribute) + len(value)
            plain += size
            items_size += size
            if len(value) > KB:
                long += 1
                items_size += len(version.name) + len(attribute) + 8  # the pointer that stands for it
        items_size += 64 if version.kind == "file" else 0  # MD5 and nonce
    items = len(versions)
    queue = plain + sum(len(version.name) for version in versions)
    return {
        "A": Stored(plain, long),
        "B": Stored(items_size, items + long),
        "C": Stored(2 * queue + items_size, 2 * (files + queue // _MESSAGE) + items + long),
    }


@dataclass(frozen=True, slots=True)
class Answers:
    """The paper's three questions, answered by brute force."""

    provenance: dict[str, tuple[tuple[str, ...], tuple[tuple[str, str], ...]]]
    """Q1: inputs and records of every version."""
    outputs: frozenset[str]
    """Q2: the files that blast wrote."""
    descendants: frozenset[str]
    """Q3: everything made from those."""


def answer(versions: list[Version]) -> Answers:
    """Go through everything."""
    made_from: dict[str, list[str]] = {}
    for version in versions:
        for name in version.inputs:
            made_from.setdefault(name, []).append(version.name)
    blast = {v.name for v in versions if ("NAME", "/usr/bin/blast") in v.records}
    outputs = {v.name for v in versions if v.kind == "file" and blast.intersection(v.inputs)}
    seen: set[str] = set()
    waiting = deque(outputs)
    while waiting:
        for name in made_from.get(waiting.popleft(), ()):
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return Answers({v.name: (v.inputs, v.records) for v in versions}, frozenset(outputs), frozenset(seen))


def query_costs(versions: list[Version], answers: Answers) -> dict[str, dict[str, Stored]]:
    """What the questions cost A and B: bytes and operations.

    A has no index: every question reads all metadata (a HEAD an object) and all long records. B reads an item a version
    for Q1, and long records; for Q2 and Q3 it asks SimpleDB, one query for the tool, one for the outputs, then one for
    every 20 names of a generation.
    """
    stored = architectures(versions)
    files = sum(version.kind == "file" for version in versions)
    scan = Stored(stored["A"].size, files + stored["A"].operations)
    outputs = sum(map(len, answers.outputs))
    found = sum(map(len, answers.descendants))
    requested = -(-len(answers.outputs) // 20)
    return {
        "A": {"Q1": scan, "Q2": scan, "Q3": scan},
        "B": {
            "Q1": Stored(stored["B"].size, stored["B"].operations),
            "Q2": Stored(outputs, 1 + requested),
            "Q3": Stored(outputs + found, 1 + requested + -(-(len(answers.outputs) + len(answers.descendants)) // 20)),
        },
    }


def batches(versions: list[Version], size: int) -> Iterator[list[Version]]:
    """Versions in commits of ``size``."""
    for start in range(0, len(versions), size):
        yield versions[start : start + size]
