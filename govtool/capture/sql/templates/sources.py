"""Relations of the tables of sources: the results of ``source`` in a project that may have its own macro for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from govtool.capture.sql.templates.dbt_relation import DbtRelation, Return
from govtool.capture.sql.templates.jinja import compile_macro
from govtool.capture.sql.templates.macros import ROOT_PACKAGE, DbtProject, MacroLibrary
from govtool.capture.sql.templates.properties import SourceTable
from govtool.capture.sql.templates.rendering import TemplateRun


def described_sources(
    project: DbtProject, variables: Mapping[str, object], dialect: str
) -> Iterator[tuple[tuple[str, ...], SourceTable]]:
    """Yield the tables of sources whose columns are described, each with its parts as ``source`` writes them."""
    described = {key for key, table in project.properties.sources.items() if table.columns}
    for key, parts in source_relations(project, described, variables, dialect):
        yield parts, project.properties.sources[key]


def source_relations(
    project: DbtProject, keys: Collection[tuple[str, str]], variables: Mapping[str, object], dialect: str
) -> Iterator[tuple[tuple[str, str], tuple[str, ...]]]:
    """Yield tables of sources, each with the parts of its relation as ``source`` writes them.

    A table whose name depends on what is not known is left out.
    """
    file = f"{project.folder}/source.sql" if project.folder else "source.sql"
    run = TemplateRun({}, dict(variables), MacroLibrary((), (project,)), file, dialect)
    run.compile = compile_macro
    with run:
        own = run.macro("source", ROOT_PACKAGE)
        for key in (key for key in project.properties.sources if key in keys):
            run.calls = run.iterations = run.output = 0
            run.undecided.clear()
            try:
                made = run.source_table(*key) if own is None else own(*key)
            except Return as returned:
                made = returned.value
            except Exception:  # whatever a macro of the project does: the template that calls it has a diagnostic
                continue
            if isinstance(made, DbtRelation) and not run.undecided and "\ue002" not in str(made):
                yield key, made.parts
