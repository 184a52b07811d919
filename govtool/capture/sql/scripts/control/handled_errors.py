"""Errors that a block handles: what decides whether its handler runs, and what an error undoes.

``BEGIN SELECT … INTO STRICT n …; EXCEPTION WHEN no_data_found THEN INSERT INTO log …`` writes the log where a statement
of the block fails. That depends on all that these statements read: their queries are a condition of the handler. Where
the handler names the error, as here, the script expects it, and the queries are a condition of the rest of the block,
too. ``WHEN OTHERS`` guards against what nobody expects: a statement that fails has a verdict on what it writes. On what
its block writes elsewhere it has one where its values show that data may make it fail (``failing_reads``): it undoes
what the block has written (PostgreSQL, or a ROLLBACK in the handler), and what stands behind it does not run.

In PostgreSQL an error takes back what the block had written, or the routine, where nobody handles it ("PL/pgSQL:
Trapping Errors"). A RAISE under a condition is therefore also a DELETE of our own from the tables that were written
before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.control import failing_reads, row_counts, variables
from govtool.capture.sql.scripts.control.branches import MAX_TESTS
from govtool.capture.sql.scripts.control.control_flow import DeclaredHandler, Guarded
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.scripts.statement import ParsedStatement
from govtool.capture.sql.scripts.trees import tree_of
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import word
from govtool.capture.sql.syntax.marks import EXITED

ERRORS: Final = frozenset({"THROW", "SIGNAL", "RAISERROR", "RAISE"})
"""First words of statements that raise an error."""
MAX_ERRORS: Final = 4_000
"""Statements of a script whose errors are followed, those in several blocks counted as often."""
_UNEXPECTED: Final = frozenset({"OTHERS", "OTHER", "ERROR", "SQLEXCEPTION", "SQLWARNING"})
"""Names of errors that stand for all errors."""
_FETCHING: Final = frozenset({"select", "fetch"})
_CHANGES: Final = (exp.Insert, exp.Update, exp.Delete, exp.Merge)


def begun(reader: StatementReader, tokens: list[Token], *, expected: bool) -> None:
    """Note what decides whether the handler that has just begun runs: all that its block has read.

    Args:
        reader: Behind the statements of the block.
        tokens: Those with which the handler begins.
        expected: The handler names the error, so that the whole block depends on it.
    """
    flow = reader.flow
    block = range(flow.blocks.get(flow.depth, len(reader.statements)), len(reader.statements))
    reads = _block_reads(reader, tokens, block)
    if not reads:
        return
    if not flow.branches.evaluated(_failed(reader, tokens, reader.branches, reads)):
        too_many(reader, tokens, "exception")
    if expected:
        _decide(reader, tokens, block, reads)
    else:
        flow.guarded.append(Guarded(flow.depth, block, len(reader.statements)))


def declared(reader: StatementReader, head: list[Token], depth: int) -> None:
    """Note a handler of MySQL that has just begun, ``DECLARE EXIT HANDLER FOR NOT FOUND``, in a block of this depth."""
    words = {word(token) for token in head}
    exits, any_error = "EXIT" in words, bool(words & _UNEXPECTED)
    of_queries = word(head[-1]) == "FOUND" and not any(token.token_type == marks.COMMA for token in head)
    reader.flow.handlers.append(
        DeclaredHandler(depth, reader.branches, exits and not any_error, of_queries, exits and any_error)
    )


def ended(reader: StatementReader, tokens: list[Token]) -> None:
    """Let what the block that ends has read decide about its handlers, and its errors about what it writes."""
    flow = reader.flow
    while flow.guarded and flow.guarded[-1].depth >= flow.depth:
        guarded = flow.guarded.pop()
        if guarded.depth == flow.depth:
            _guard(reader, tokens, guarded.block, range(guarded.start, len(reader.statements)))
    start = flow.blocks.get(flow.depth, len(reader.statements))
    for handler in [each for each in flow.handlers if each.depth == flow.depth]:
        flow.handlers.remove(handler)
        written: list[int] = []
        block: list[int] = []
        for number in range(start, len(reader.statements)):
            inside = handler.branch in [arm.branch for arm in reader.statements[number].branch]
            (written if inside else block).append(number)
        queried = [number for number in block if reader.statements[number].head in _FETCHING]
        reads = _block_reads(reader, tokens, queried if handler.of_queries else block)
        if reads:
            _test(reader, tokens, written, _failed(reader, tokens, handler.branch, reads))
        if reads and handler.leaves:
            _decide(reader, tokens, block, reads)
        if handler.guards:
            _guard(reader, tokens, block, written)


def _guard(reader: StatementReader, tokens: list[Token], block: Sequence[int], handler: Sequence[int]) -> None:
    """Let statements that data may make fail decide about what the block writes: an error undoes it, or skips it."""
    statements = reader.statements
    undoes = reader.lex.name in variables.PLPGSQL or any([statements[n].head == "rollback" for n in handler])  # noqa: C419
    failing: list[tuple[float, list[exp.Expr]]] = []
    for number in block:
        reads = failing_reads.of(statements[number], reader.lex.name)
        if reads:
            failing.append((number, reads + _assigned(reader, [n for n in block if n < number], reads)))
    for one in reader.conditions if block else ():
        if block[0] <= one.at <= block[-1] + 1 and failing_reads.may_fail(one.test):
            failing.append((one.at - 0.5, [one.test.copy()]))
    for number in _writes(reader, block) if failing else ():
        deciding = [
            item
            for at, reads in failing
            if at != number and (undoes or at < number or _in_one_loop(statements[int(at)], statements[number]))
            for item in reads
        ]
        if deciding and not _follows(reader, tokens, len(deciding)):
            return
        if deciding:
            _test(reader, tokens, [number], exp.Tuple(expressions=[item.copy() for item in deciding], block=True))


def _assigned(reader: StatementReader, numbers: Sequence[int], reads: list[exp.Expr]) -> list[exp.Expr]:
    """What the block has given the variables in an expression: a statement before it sees other values."""
    names = {node.name.lower() for read in reads for node in read.find_all(exp.Column, exp.Parameter)}
    found: list[exp.Expr] = []
    for number in reversed(numbers):
        tree = reader.statements[number].tree
        if isinstance(tree, exp.Set) and tree.args.get("expression") and names & {*tree.args.get("assigns", ())}:
            value = tree.args["expression"].copy()
            names |= {node.name.lower() for node in value.find_all(exp.Column, exp.Parameter)}
            found.append(exp.Subquery(this=value) if isinstance(value, exp.Query) else value)
    return found


def _in_one_loop(one: ParsedStatement, other: ParsedStatement) -> bool:
    return any([arm.loops and arm in other.branch for arm in one.branch])  # noqa: C419


def _failed(reader: StatementReader, tokens: list[Token], branch: int, reads: list[exp.Expr]) -> exp.Expr:
    """Return the condition that a block fails, and its handler runs: by all that the block has read."""
    return variables.own(reader, tokens, f"{EXITED}to {branch}", reads)


def _block_reads(reader: StatementReader, tokens: list[Token], numbers: Sequence[int]) -> list[exp.Expr]:
    """Return all that the statements of a block read, and their conditions."""
    statements = [reader.statements[number] for number in numbers if reader.statements[number].head != "exit"]
    if not _follows(reader, tokens, len(statements)):
        return []
    reads = [item for statement in statements for item in _reads(tree_of(statement), reader.lex.name)]
    tests = [test for statement in statements for test in statement.tests]
    tests += [condition.test for condition in reader.conditions if condition.at in numbers]
    outer = {id(test) for test in reader.flow.branches.tests}
    # What an inner block reads is there by its statements.
    unique = {id(test): test for test in tests if id(test) not in outer and not test.args.get("block")}
    return reads + [test.copy() for test in unique.values()]


def _follows(reader: StatementReader, tokens: list[Token], count: int) -> bool:
    """Count statements that errors are followed of; False, with a note, where a script has too many."""
    before = reader.errors
    reader.errors += count
    if before <= MAX_ERRORS < reader.errors:
        too_many(reader, tokens, "exception")
    return reader.errors <= MAX_ERRORS


def _decide(reader: StatementReader, tokens: list[Token], block: Sequence[int], reads: list[exp.Expr]) -> None:
    """Let what a block reads decide about what it writes."""
    written = _writes(reader, block)
    if len(written) * len(reads) > MAX_ERRORS:
        too_many(reader, tokens, "exception")
        return
    _test(reader, tokens, written, exp.Tuple(expressions=[item.copy() for item in reads], block=True))


def _test(reader: StatementReader, tokens: list[Token], numbers: Sequence[int], test: exp.Expr) -> None:
    """Let a condition decide about statements; with a note, where there are too many about one."""
    is_full = False
    for number in numbers:
        statement = reader.statements[number]
        if statement.tree is None or statement.head == "exit":
            continue
        if len(statement.tests) < MAX_TESTS:
            reader.statements[number] = statement._replace(tests=(*statement.tests, test))
        else:
            is_full = True
    if is_full:
        too_many(reader, tokens, "exception")


def too_many(reader: StatementReader, tokens: list[Token], head: str) -> None:
    """Note that more conditions decide about a statement than are followed."""
    message = f"more than {MAX_TESTS} conditions decide about one statement"
    reader.add(tokens, None, "opaque", reader.diagnostic("nesting", "warning", message, tokens[0]), head=head)


def _writes(reader: StatementReader, numbers: Sequence[int]) -> list[int]:
    """The statements that write rows: what a variable of the block is, matters only where the block goes on."""
    return [number for number in numbers if not isinstance(reader.statements[number].tree, exp.Set)]


def _reads(tree: exp.Expr | None, dialect: str) -> list[exp.Expr]:
    """What a statement reads: the values that it computes, and the rows that it touches."""
    if isinstance(tree, exp.Set) and not tree.args.get("counts"):
        if tree.args.get("fetches"):
            return [exp.column(tree.args["fetches"])]
        tree = tree.args.get("expression")
    if isinstance(tree, exp.Query):
        query = tree.copy()
        query.set("into", None)
        return [exp.Subquery(this=query)]
    if not isinstance(tree, _CHANGES):
        return []
    found = row_counts.counted_rows(tree, dialect)
    if found is None:
        return []
    found.set("expressions", row_counts.values_of(tree) or [exp.Literal.number(1)])
    reads: list[exp.Expr] = [exp.Subquery(this=found)]
    if isinstance(tree, exp.Insert):
        if isinstance(tree.expression, exp.Query):
            reads.append(exp.Subquery(this=tree.expression.copy()))
        table = row_counts.changed_table(tree)
        if table is not None:
            one, rows = exp.Literal.number(1), exp.From(this=row_counts.named(table))
            reads.append(exp.Exists(this=exp.Select(expressions=[one], from_=rows)))
    return reads


def expects(tokens: list[Token]) -> bool:
    """Return whether ``EXCEPTION WHEN error THEN`` names the error."""
    return not {word(token) for token in tokens} & _UNEXPECTED


def after_conditions(tokens: list[Token], start: int) -> int:
    """Return where the statement of a handler begins, behind ``FOR SQLSTATE '23000', NOT FOUND``."""
    at = start + 1
    while at < len(tokens):
        head = word(tokens[at])
        at += 1 + (head == "NOT")
        if head == "SQLSTATE":
            at += 1 + (at < len(tokens) and word(tokens[at]) == "VALUE")
        if at >= len(tokens) or tokens[at].token_type != marks.COMMA:
            break
        at += 1
    return at


def raised(reader: StatementReader, tokens: list[Token]) -> None:
    """Let the conditions of a RAISE decide about what the routine has written before it, which the error undoes."""
    if word(tokens[0]) != "RAISE" or reader.lex.name not in variables.PLPGSQL:
        return
    written: dict[str, exp.Table] = {}
    for statement in reader.statements[min(reader.flow.blocks.values(), default=len(reader.statements)) :]:
        # Of these, a stub does not have the table.
        tree = tree_of(statement) if isinstance(statement.tree, (exp.Update, exp.Delete)) else statement.tree
        table = row_counts.changed_table(tree) if isinstance(tree, _CHANGES) and statement.head != "raise" else None
        if table is not None:
            written.setdefault(table.sql(), table)
    for each in written.values() if _follows(reader, tokens, len(written)) else ():
        undone = exp.Delete(this=each.copy(), where=exp.Where(this=exp.true()), counts=True)
        reader.add(tokens, undone, "ignored", head="raise")


def passes_on(reader: StatementReader, tokens: list[Token]) -> bool:
    """Return whether an error is only raised again: in a handler, under no other condition."""
    tested = [item.kind for item in reader.flow.branches.open if item.tests]
    return word(tokens[0]) in ERRORS and all([kind == "handler" for kind in tested])  # noqa: C419
