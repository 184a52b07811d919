"""T-SQL as it is written: clauses that the parser does not know, statements without semicolons between them."""

from __future__ import annotations

from textwrap import dedent

import pytest
from lineage_cases import lines_of

from govtool.capture.sql.extract import Extraction, Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.scripts.clauses.table import simplified
from govtool.capture.sql.scripts.clients.ssms_templates import rendered
from govtool.capture.sql.scripts.script import parse_script
from govtool.capture.sql.scripts.tsql import split_statements
from govtool.capture.sql.syntax.lexer import lexer


def _extract(*texts: str, dialect: str = "tsql") -> Extraction:
    scripts = [Script(f"{number}.sql", dedent(text)) for number, text in enumerate(texts)]
    return extract(scripts, Options(dialect=dialect))


def _lines(*texts: str) -> list[str]:
    return lines_of(_extract(*texts))


def _codes(extraction: Extraction) -> list[str]:
    return [note.code for note in extraction.diagnostics]


def _columns(extraction: Extraction, target: str) -> list[str]:
    return [c.path for d in extraction.derivations if d.target == target for c in d.columns]


def _pieces(text: str) -> list[str]:
    pieces = split_statements(lexer("tsql").tokenize(text))
    return [" ".join(text[piece[0].start : piece[-1].end + 1].split()) for piece in pieces]


# -- where statements begin ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pieces",
    [
        ["SET IDENTITY_INSERT dbo.t ON", "INSERT INTO dbo.t (a) SELECT b FROM s", "SET IDENTITY_INSERT dbo.t OFF"],
        ["SET NOCOUNT ON", "UPDATE t SET a = 1", "DELETE FROM t"],
        ["INSERT INTO t WITH (TABLOCK) (a) SELECT b FROM s WITH (NOLOCK)", "SELECT 1"],
        ["CREATE INDEX i ON t (a) WITH (DATA_COMPRESSION = PAGE)", "SELECT a FROM t"],
        ["CREATE TABLE #t (a int) WITH (HEAP)", "INSERT INTO #t SELECT 1"],
        ["CREATE TABLE #t (a int)", "IF 1 = 1", "DROP TABLE IF EXISTS #t"],
        ["ALTER TABLE t DROP COLUMN IF EXISTS a", "IF EXISTS (SELECT 1)", "DROP VIEW IF EXISTS v"],
        ["CREATE TABLE t (a int REFERENCES u (b) ON DELETE SET NULL ON UPDATE CASCADE)", "SELECT 1"],
        ["ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u (b) ON DELETE CASCADE ON UPDATE NO ACTION", "DELETE FROM t"],
        ["ALTER TABLE t ADD c int", "SET @x = 1"],
        ["ALTER TABLE t SET (LOCK_ESCALATION = AUTO)", "SET @x = 1"],
        ["ALTER DATABASE d SET RECOVERY SIMPLE", "SET NOCOUNT ON", "USE d"],
        ["ALTER TABLE t ADD e datetime2 GENERATED ALWAYS AS ROW END NOT NULL", "UPDATE t SET a = 1"],
        ["DROP TABLE #a, #b", "RETURN"],
        ["CREATE DATABASE d", "USE d"],
        ["SELECT :a FROM t WHERE b LIKE :b AND c BETWEEN :c AND :d", "SELECT send FROM q"],
        ["EXEC sp_configure 'x', 1", "RECONFIGURE", "SEND ON CONVERSATION @h", "REVERT", "SELECT 1"],
        ["IF UPDATE(a) OR UPDATE(b)", "UPDATE t SET c = 1"],
        ["IF NOT UPDATE(a)", "RETURN", "DELETE FROM t"],
        ["BULK INSERT t FROM 'f.csv' WITH (FIRSTROW = 2)", "SELECT 1"],
        ["CREATE PROCEDURE p @a AS dbo.t READONLY, @b AS int = NULL OUTPUT WITH EXECUTE AS OWNER AS", "SELECT 1"],
        ["CREATE PROCEDURE p AS EXTERNAL NAME a.b.c"],
        ["CREATE PARTITION FUNCTION f (date) AS RANGE RIGHT FOR VALUES ('2012')", "SELECT 1"],
        ["BEGIN ATOMIC WITH (TRANSACTION ISOLATION LEVEL = SNAPSHOT, LANGUAGE = N'x')", "INSERT t SELECT 1", "END"],
        ["WITH XMLNAMESPACES ('u' AS p), q AS (SELECT 1 AS a) UPDATE b SET a = 1", "SELECT 1"],
        ["SELECT a FROM t", "WITH XMLNAMESPACES ('u' AS p) INSERT #t SELECT 1"],
        ["MERGE t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = 1 WHEN NOT MATCHED THEN INSERT (a) VALUES (1)"],
    ],
)
def test_statements_without_semicolons_are_told_apart(pieces: list[str]) -> None:
    assert _pieces("\n".join(pieces)) == pieces


def test_a_label_is_no_statement_and_ends_one() -> None:
    assert _pieces("SELECT a FROM t\nDone:\nDELETE FROM t GOTO Done") == [
        "SELECT a FROM t",
        "DELETE FROM t",
        "GOTO Done",
    ]
    assert _pieces("IF @a = 1 GOTO x BEGIN SELECT 1 END x: RETURN") == [
        "IF @a = 1",
        "GOTO x",
        "BEGIN",
        "SELECT 1",
        "END",
        "RETURN",
    ]


def test_labels_in_a_procedure_lose_nothing() -> None:
    found = _extract(
        """
        CREATE PROCEDURE dbo.p @n int AS
        BEGIN
          IF @n = 1 GOTO Second
          INSERT INTO dbo.t (a) SELECT x FROM dbo.s1
          Second:
          INSERT INTO dbo.t (a) SELECT x FROM dbo.s2
          RETURN
        Failed:
          DELETE FROM dbo.t
        END
        """
    )
    assert lines_of(found) == [
        "dbo.t.* <- dbo.s1 read, dbo.s2 read",
        "dbo.t.a <- dbo.s1.x identity, dbo.s2.x identity",
    ]
    assert found.opaque == found.partial == 0


def test_an_insert_behind_set_identity_insert_is_read() -> None:
    assert _lines("SET IDENTITY_INSERT dbo.t ON\nINSERT INTO dbo.t (a) SELECT b FROM dbo.s") == [
        "dbo.t.* <- dbo.s read",
        "dbo.t.a <- dbo.s.b identity",
    ]


def test_a_trigger_that_asks_which_columns_changed() -> None:
    assert _lines(
        """
        CREATE TRIGGER dbo.tr ON dbo.t AFTER INSERT, UPDATE AS
        BEGIN
          IF UPDATE([a]) OR UPDATE(b)
            INSERT INTO dbo.log (a) SELECT s.a FROM dbo.s AS s
          IF UPDATE(c) BEGIN
            UPDATE dbo.log SET d = e WHERE f = 1
          END
        END
        """
    ) == [
        "dbo.log.* <- dbo.s read",
        "dbo.log.a <- dbo.s.a identity",
        "dbo.log.d <- dbo.log.e identity, dbo.log.f conditional",
    ]


def test_a_natively_compiled_procedure() -> None:
    assert _lines(
        """
        CREATE PROCEDURE dbo.p @a int NOT NULL WITH NATIVE_COMPILATION, SCHEMABINDING, EXECUTE AS OWNER AS
        BEGIN ATOMIC WITH (TRANSACTION ISOLATION LEVEL = SNAPSHOT, LANGUAGE = N'us_english')
          INSERT INTO dbo.t (a) SELECT x FROM dbo.s WHERE y = @a
        END
        """
    ) == ["dbo.t.* <- dbo.s read, dbo.s.y filter", "dbo.t.a <- dbo.s.x identity"]


# -- clauses without lineage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t WITH (TABLOCK) (a) SELECT b FROM s",
        "INSERT t WITH (TABLOCKX, HOLDLOCK) (a) SELECT b FROM s OPTION (USE HINT('DISALLOW_BATCH_MODE'), RECOMPILE)",
        "INSERT [t] WITH(TABLOCK)([a]) SELECT b FROM s WITH (INDEX (ix), NOLOCK)",
        "WITH XMLNAMESPACES ('http://x' AS p, DEFAULT 'http://y') INSERT t (a) SELECT b FROM s",
        "WITH XMLNAMESPACES ('x' AS p), q AS (SELECT b FROM s) INSERT t WITH (TABLOCK) (a) SELECT b FROM q",
        "WITH XMLNAMESPACES ('x' AS p)\n, q (c) AS (SELECT b FROM s), r AS (SELECT c FROM q) INSERT t (a) SELECT c FROM r",
        "WITH CHANGE_TRACKING_CONTEXT (0x1) INSERT INTO t (a) SELECT b FROM s",
    ],
)
def test_inserts_with_hints_and_namespaces(text: str) -> None:
    found = _extract(text)
    assert lines_of(found) == ["t.* <- s read", "t.a <- s.b identity"]
    assert not found.diagnostics


def test_updates_and_deletes_behind_namespaces() -> None:
    found = _extract(
        """
        WITH XMLNAMESPACES ('http://x' AS p)
        , x AS (
          SELECT r.h, c.n.value('@Name', 'varchar(10)') AS name
          FROM #relop AS r CROSS APPLY r.plan_xml.nodes('//p:Object') AS c(n)
        )
        UPDATE b SET b.name = x.name FROM ##procs AS b JOIN x ON x.h = b.h
        OPTION (RECOMPILE)
        WITH XMLNAMESPACES ('http://x' AS p) DELETE d FROM dbo.t AS d WHERE d.doc.exist('//p:a') = 1
        """
    )
    assert lines_of(found) == [
        "dbo.t.* <- dbo.t.doc filter",
        'tempdb.dbo."##procs".* <- temp.relop read',
        'tempdb.dbo."##procs".name <- temp.relop.h conditional, temp.relop.plan_xml conditional, '
        "temp.relop.plan_xml transformation, "
        'tempdb.dbo."##procs".h conditional',
    ]
    assert not _codes(found)


def test_namespaces_in_a_view() -> None:
    assert _lines("CREATE VIEW v AS WITH XMLNAMESPACES ('x' AS p) SELECT d.value('a', 'int') AS a FROM t") == [
        "v.* <- t read",
        "v.a <- t.d transformation",
    ]


def test_tables_with_all_that_storage_needs() -> None:
    found = _extract(
        """
        CREATE TABLE dbo.t (
          id int IDENTITY(1, 1) NOT FOR REPLICATION PRIMARY KEY CLUSTERED,
          [e mail] nvarchar(20) MASKED WITH (FUNCTION = 'email()') NULL,
          ssn char(11) COLLATE Latin1_General_BIN2 ENCRYPTED WITH (COLUMN_ENCRYPTION_KEY = k, ENCRYPTION_TYPE = RANDOMIZED),
          r uniqueidentifier ROWGUIDCOL NOT NULL UNIQUE CONSTRAINT df DEFAULT (newid()),
          x xml (CONTENT dbo.c), sp int SPARSE NULL,
          k int INDEX ix NONCLUSTERED HASH WITH (BUCKET_COUNT = 8) NOT NULL,
          s datetime2 GENERATED ALWAYS AS ROW START HIDDEN NOT NULL,
          e datetime2 GENERATED ALWAYS AS ROW END HIDDEN NOT NULL,
          total AS (id * k) PERSISTED,
          PERIOD FOR SYSTEM_TIME (s, e),
          CONSTRAINT u UNIQUE NONCLUSTERED (k ASC, id DESC) WITH (FILLFACTOR = 80) ON [PRIMARY],
          INDEX i2 CLUSTERED COLUMNSTORE,
          CONSTRAINT fk FOREIGN KEY (k) REFERENCES q (k) ON DELETE CASCADE NOT FOR REPLICATION,
        ) ON ps (id) TEXTIMAGE_ON [PRIMARY] WITH (SYSTEM_VERSIONING = ON (HISTORY_TABLE = dbo.h), MEMORY_OPTIMIZED = ON)
        """
    )
    names = ["id", '"e mail"', "ssn", "r", "x", "sp", "k", "s", "e", "total"]
    assert _columns(found, "dbo.t") == names
    assert lines_of(found)[-2] == "dbo.t.total <- dbo.t.id transformation, dbo.t.k transformation"
    assert found.derivations[0].columns_complete
    assert not found.diagnostics


@pytest.mark.parametrize("column", ["hash", "hidden", "sparse", "[index]", "masked", "clustered"])
def test_columns_that_are_called_like_a_clause_stay(column: str) -> None:
    found = _extract(f"CREATE TABLE t ({column} int, b int PRIMARY KEY NONCLUSTERED, UNIQUE CLUSTERED ({column}))")
    assert len(_columns(found, "t")) == 2


def test_temporary_tables_and_variables_with_indexes_have_their_columns() -> None:
    found = _extract(
        """
        CREATE TABLE #t (a int PRIMARY KEY CLUSTERED, b int INDEX ix, INDEX i2 CLUSTERED (a, b))
        DECLARE @v TABLE (a int PRIMARY KEY NONCLUSTERED, b int, INDEX i3 UNIQUE CLUSTERED (b))
        INSERT #t SELECT x, y FROM s
        INSERT @v SELECT * FROM #t
        INSERT INTO o (p) SELECT b FROM @v
        """
    )
    assert lines_of(found) == [
        'o.* <- temp."@v" read',
        'o.p <- temp."@v".b identity',
        'temp."@v".* <- temp.t read',
        'temp."@v".a <- temp.t.a identity',
        'temp."@v".b <- temp.t.b identity',
        "temp.t.* <- s read",
        "temp.t.a <- s.x identity",
        "temp.t.b <- s.y identity",
    ]
    assert not found.diagnostics


def test_alter_table_says_its_columns_and_nothing_else() -> None:
    found = _extract(
        """
        CREATE TABLE dbo.t (a int)
        ALTER TABLE dbo.t ADD b nvarchar(9) MASKED WITH (FUNCTION = 'default()') NULL,
          e datetime2 GENERATED ALWAYS AS ROW END HIDDEN NOT NULL, PERIOD FOR SYSTEM_TIME (a, e)
        ALTER TABLE dbo.t ADD INDEX ix NONCLUSTERED HASH (a) WITH (BUCKET_COUNT = 8)
        ALTER TABLE dbo.t WITH CHECK ADD CONSTRAINT df DEFAULT (getdate()) FOR a, CONSTRAINT ck CHECK (a > 1)
        INSERT INTO o SELECT * FROM dbo.t
        """
    )
    assert lines_of(found)[:4] == [
        "o.* <- dbo.t read",
        "o.a <- dbo.t.a identity",
        "o.b <- dbo.t.b identity",
        "o.e <- dbo.t.e identity",
    ]
    assert found.opaque == found.partial == 0


def test_what_needs_no_simpler_form_stays_as_it_is() -> None:
    for text in (
        "SELECT a FROM t WHERE b < 1 AND c > 2",
        "UPDATE t SET a = 1 WHERE b = $10",
        "CREATE TABLE t (a int NOT NULL, b AS (a + 1))",
    ):
        tokens = lexer("tsql").tokenize(text)
        assert simplified(tokens, "tsql") is tokens


# -- changes with common tables ------------------------------------------------------------------------------------


def test_what_is_put_out_by_changes_of_common_tables_is_written() -> None:
    found = _extract(
        """
        CREATE TABLE s (a int, b int);
        WITH c AS (SELECT a AS z, b FROM s WHERE b > 1) DELETE FROM c OUTPUT deleted.z, deleted.b INTO arch (x, y);
        WITH c AS (SELECT a, b AS v FROM s) UPDATE c SET v = 1 OUTPUT deleted.v INTO arch2 (q);
        WITH c AS (SELECT a, b FROM src) MERGE t USING c ON t.a = c.a WHEN MATCHED THEN UPDATE SET b += c.b
          OUTPUT inserted.a, c.b INTO arch3 (p, q);
        WITH c AS (SELECT a FROM src) INSERT INTO t (a) OUTPUT inserted.a INTO arch4 (x) SELECT a FROM c;
        """
    )
    assert lines_of(found) == [
        "arch.* <- s read, s.b filter",
        "arch.x <- s.a identity",
        "arch.y <- s.b identity",
        "arch2.* <- s read",
        "arch2.q <- s.b identity",
        "arch3.* <- src read, src.a join, t read, t.a join",
        "arch3.p <- t.a identity",
        "arch3.q <- src.b identity",
        "arch4.* <- t read",
        "arch4.x <- t.a identity",
        "s.* <- s.b filter",
        "s.b <-",
        "t.* <- src read",
        "t.a <- src.a identity",
        "t.b <- src.a conditional, src.b transformation, t.a conditional, t.b transformation",
    ]
    assert not _codes(found)


def test_a_temporary_table_of_all_sessions_is_no_table_of_its_name() -> None:
    assert _lines(
        """
        SELECT a INTO ##t FROM s
        GO
        WITH t AS (SELECT a FROM ##t) INSERT INTO u (b) SELECT a FROM t
        """,
        "INSERT INTO o (c) SELECT a FROM tempdb..##T",
    ) == [
        'o.* <- tempdb.dbo."##t" read',
        'o.c <- tempdb.dbo."##t".a identity',
        'tempdb.dbo."##t".* <- s read',
        'tempdb.dbo."##t".a <- s.a identity',
        'u.* <- tempdb.dbo."##t" read',
        'u.b <- tempdb.dbo."##t".a identity',
    ]


def test_a_temporary_table_is_not_the_common_table_of_its_name() -> None:
    assert _lines(
        """
        WITH w AS (SELECT sum(b) AS n FROM s)
        UPDATE ws SET ws.total += w.n FROM #w AS ws CROSS JOIN w WHERE ws.pass = 1 OPTION (RECOMPILE)
        """
    ) == [
        "temp.w.* <- s read",
        "temp.w.total <- s.b aggregation, temp.w.pass conditional, temp.w.total transformation",
    ]


def test_a_variable_is_assigned_by_a_query_with_hints() -> None:
    assert _lines(
        """
        CREATE PROCEDURE p AS
        DECLARE @v int, @w nvarchar(max)
        SELECT @v = a FROM t WHERE b = 1 OPTION (USE HINT('x'))
        SET @w = (SELECT BulkColumn FROM OPENROWSET(BULK N'f.json', SINGLE_CLOB) AS j)
        INSERT INTO o (c, d) VALUES (@v, @w)
        """
    ) == [
        'o.* <- "f.json" read, t read, t.b filter',
        "o.c <- t.a identity",
        'o.d <- "f.json".bulkcolumn identity',
    ]


def test_methods_that_change_a_column_in_place() -> None:
    assert _lines(
        """
        UPDATE p SET x.modify('insert sql:column("o.b") into (/a)[1]'), p.y.modify(N'delete /a')
        FROM dbo.o AS o JOIN dbo.t AS p ON p.i = o.i
        """
    ) == [
        "dbo.t.* <- dbo.o read",
        "dbo.t.x <- dbo.o.b transformation, dbo.o.i conditional, dbo.t.i conditional, dbo.t.x transformation",
        "dbo.t.y <- dbo.o.i conditional, dbo.t.i conditional, dbo.t.y transformation",
    ]


def test_methods_that_change_a_variable_in_place() -> None:
    found = _extract(
        """
        CREATE PROCEDURE p AS
        DECLARE @v xml = (SELECT d FROM s)
        SET @v.modify('delete /a')
        INSERT INTO t (a) VALUES (@v)
        SET @v.modify('insert sql:variable("@w") into (/a)[1]')
        INSERT INTO u (a) VALUES (@v)
        """
    )
    assert [line for line in lines_of(found) if "opaque" not in line] == ["t.* <- s read", "t.a <- s.d identity"]
    assert any(line.startswith("u.a <- ") and line.endswith(" opaque") for line in lines_of(found))


def test_a_table_variable_is_not_the_common_table_of_its_name() -> None:
    assert _lines(
        """
        DECLARE @q TABLE (a int, b int);
        WITH q AS (SELECT k, sum(m) AS n FROM s GROUP BY k) INSERT @q (a, b) SELECT k, n FROM q
        """
    ) == [
        'temp."@q".* <- s read, s.k group_by',
        'temp."@q".a <- s.k identity',
        'temp."@q".b <- s.m aggregation',
    ]


# -- rowsets -----------------------------------------------------------------------------------------------------------


def test_files_are_sources() -> None:
    found = _extract(
        r"""
        INSERT INTO t (a) SELECT BulkColumn FROM OPENROWSET(BULK 'c:\d\f.txt', SINGLE_CLOB) AS x
        INSERT INTO u (a) SELECT y.b FROM OPENROWSET(BULK N'g.csv', FORMATFILE = 'g.fmt') WITH (b int) AS y
        BULK INSERT dbo.v FROM 'h.csv' WITH (FIRSTROW = 2, CODEPAGE = '65001', FIELDTERMINATOR = ',')
        """
    )
    assert lines_of(found) == [
        'dbo.v.* <- "h.csv" opaque, "h.csv" read',
        't.* <- "c:\\d\\f.txt" read',
        't.a <- "c:\\d\\f.txt".bulkcolumn identity',
        'u.* <- "g.csv" read',
        'u.a <- "g.csv".b identity',
    ]
    assert not _codes(found)


def test_a_file_that_only_a_variable_names_is_not_guessed() -> None:
    found = _extract("BULK INSERT dbo.v FROM @file WITH (FIRSTROW = 2)")
    assert not found.derivations
    assert found.opaque == 1


def test_columns_that_a_model_predicts_depend_on_all_that_it_is_given() -> None:
    assert _lines(
        """
        CREATE TABLE t (u int, v int)
        SELECT d.u, p.score FROM PREDICT(MODEL = @m, DATA = t AS d, RUNTIME = ONNX) WITH (score float) AS p
        """
    ) == [".* <- t read", ".score <- t.u transformation, t.v transformation", ".u <- t.u identity"]


def test_full_text_searches() -> None:
    found = _extract(
        """
        CREATE TABLE dbo.t (id int, a text, b text, c text)
        SELECT q.a, k.[RANK], k.[KEY] AS k
        FROM CONTAINSTABLE(dbo.t, (b, c), @words, LANGUAGE @language) AS k JOIN dbo.t AS q ON q.id = k.[KEY]
        """
    )
    assert lines_of(found) == [
        ".* <- dbo.t opaque, dbo.t read, dbo.t.id join",
        ".a <- dbo.t.a identity",
        ".k <- dbo.t opaque",
        ".rank <- dbo.t.b transformation, dbo.t.c transformation",
    ]


def test_system_functions_by_the_older_name() -> None:
    assert _lines("SELECT t.a FROM ::fn_trace_gettable(@f, DEFAULT) AS t") == lines_of(
        _extract("SELECT t.a FROM fn_trace_gettable(@f, DEFAULT) AS t")
    )


def test_default_is_no_column_and_money_is_no_name() -> None:
    found = _extract(
        """
        SELECT t.a FROM sys.fn_x(DEFAULT, 1) AS t
        INSERT INTO o (a, b) SELECT x, $3.50 + y FROM s WHERE z > $10 AND w < -$7
        """
    )
    assert "unresolved" not in _codes(found)
    assert [line for line in lines_of(found) if line.startswith("o.")] == [
        "o.* <- s read, s.w filter, s.z filter",
        "o.a <- s.x identity",
        "o.b <- s.y transformation",
    ]


def test_the_next_value_of_a_sequence_is_of_no_table() -> None:
    assert _lines(
        "INSERT INTO t (a, b, c) SELECT NEXT VALUE FOR dbo.q, NEXT VALUE FOR q OVER (ORDER BY k), x FROM s"
    ) == [
        "t.* <- s read",
        "t.a <-",
        "t.b <- s.k window",
        "t.c <- s.x identity",
    ]


# -- graphs -----------------------------------------------------------------------------------------------------------


def test_a_pattern_is_a_condition_on_nodes_and_edges() -> None:
    assert _lines("SELECT q.name FROM Person p, likes l, Person q WHERE MATCH(p-(l)->q) AND q.age > 3") == [
        '.* <- likes read, likes."$from_id" filter, likes."$to_id" filter, person read, '
        'person."$node_id" filter, person.age filter',
        ".name <- person.name identity",
    ]


@pytest.mark.parametrize(
    ("pattern", "condition"),
    [
        ("a-(b)->c", "a . $node_id = b . $from_id AND b . $to_id = c . $node_id"),
        ("a<-(b)-c", "a . $node_id = b . $to_id AND b . $from_id = c . $node_id"),
        (
            "a-(b)->c<-(d)-e",
            "a . $node_id = b . $from_id AND b . $to_id = c . $node_id "
            "AND c . $node_id = d . $to_id AND d . $from_id = e . $node_id",
        ),
        ("SHORTEST_PATH(a(-(b)->c)+)", "a . $node_id = b . $from_id AND b . $to_id = c . $node_id"),
        ("SHORTEST_PATH(a(-(b)->c){1,3})", "a . $node_id = b . $from_id AND b . $to_id = c . $node_id"),
    ],
)
def test_patterns(pattern: str, condition: str) -> None:
    tokens = lexer("tsql").tokenize(f"SELECT 1 FROM a WHERE MATCH({pattern})")
    assert " ".join(token.text for token in simplified(tokens, "tsql")[5:]) == condition


def test_a_pattern_that_is_not_understood_stays() -> None:
    tokens = lexer("tsql").tokenize("SELECT 1 FROM a WHERE MATCH(a-(b)->)")
    assert simplified(tokens, "tsql") is tokens


def test_tables_of_nodes_and_edges() -> None:
    found = _extract(
        """
        CREATE TABLE Person (id int PRIMARY KEY, name varchar(9)) AS NODE;
        CREATE TABLE likes AS EDGE;
        CREATE TABLE knows (since date, CONSTRAINT ec CONNECTION (Person TO Person) ON DELETE CASCADE) AS EDGE;
        INSERT INTO likes ($from_id, $to_id) SELECT $node_id, id FROM Person;
        INSERT INTO knows SELECT a.$node_id, b.$node_id, x.d FROM x JOIN Person a ON a.id = x.a JOIN Person b ON b.id = x.b;
        INSERT INTO o SELECT * FROM Person;
        """
    )
    assert [line for line in lines_of(found) if not line.startswith("!")] == [
        'knows."$from_id" <- person."$node_id" identity',
        'knows."$to_id" <- person."$node_id" identity',
        "knows.* <- person read, person.id join, x read, x.a join, x.b join",
        "knows.since <- x.d identity",
        'likes."$from_id" <- person."$node_id" identity',
        'likes."$to_id" <- person.id identity',
        "likes.* <- person read",
        "o.* <- person read",
        "o.id <- person.id identity",
        "o.name <- person.name identity",
    ]
    assert {d.target for d in found.derivations} == {"person", "likes", "knows", "o"}


# -- table types ---------------------------------------------------------------------------------------------------


_TYPE = "CREATE TYPE dbo.tt AS TABLE (a int PRIMARY KEY NONCLUSTERED HASH WITH (BUCKET_COUNT = 8), b int)"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_variables_of_a_table_type_have_its_columns(order: tuple[int, int]) -> None:
    body = """
        CREATE PROCEDURE dbo.p AS
        BEGIN
          DECLARE @y AS dbo.tt, @s sysname = 'x'
          INSERT @y SELECT q, r FROM src
          INSERT INTO z SELECT * FROM @y
        END
        """
    texts = [_TYPE, body]
    assert _lines(*[texts[i] for i in order]) == [
        'temp."@y".* <- src read',
        'temp."@y".a <- src.q identity',
        'temp."@y".b <- src.r identity',
        'z.* <- temp."@y" read',
        'z.a <- temp."@y".a identity',
        'z.b <- temp."@y".b identity',
    ]


def test_a_table_type_is_no_table() -> None:
    found = _extract(_TYPE)
    assert not found.derivations
    assert not found.diagnostics


def test_a_table_type_that_nothing_shows() -> None:
    assert _lines("DECLARE @o other.tt\nINSERT INTO @o (g) SELECT h FROM s\nINSERT INTO z (k) SELECT g FROM @o") == [
        'temp."@o".* <- s read',
        'temp."@o".g <- s.h identity',
        'z.* <- temp."@o" read',
        'z.k <- temp."@o".g identity',
    ]


def test_rows_that_a_routine_is_handed_come_from_its_caller() -> None:
    found = _extract(
        _TYPE,
        """
        CREATE PROCEDURE dbo.p @k int, @x AS dbo.tt READONLY AS
          INSERT INTO z (k) SELECT t.a FROM @x AS t JOIN u ON u.i = t.b WHERE t.a = @k
        """,
    )
    assert lines_of(found, expected=["! opaque"]) == [
        "! opaque",
        "! star-unresolved",
        'temp."@x".* <- "caller(dbo.p)" opaque',
        'temp."@x".a <- "caller(dbo.p)" opaque',
        'temp."@x".b <- "caller(dbo.p)" opaque',
        'z.* <- temp."@x" read, temp."@x".a filter, temp."@x".b join, u read, u.i join',
        'z.k <- temp."@x".a identity',
    ]


# -- other statements ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        "SET NOCOUNT, XACT_ABORT ON",
        "RECONFIGURE WITH OVERRIDE",
        "DISABLE TRIGGER tr ON DATABASE",
        "DROP COLUMN MASTER KEY k",
        "CREATE PARTITION FUNCTION f (date) AS RANGE RIGHT FOR VALUES ('2012', '2013')",
        "EXECUTE AS USER = 'x'",
        "CREATE DATABASE d ON (NAME = N'd', FILENAME = N'c:\\d.mdf', SIZE = 102400KB)",
    ],
)
def test_administration_carries_no_lineage(text: str) -> None:
    found = _extract(text)
    assert (found.ignored, found.statements, found.diagnostics) == (1, 0, ())


def test_an_assignment_that_does_not_parse_is_no_option_of_the_session() -> None:
    found = _extract("CREATE PROCEDURE p AS SET @a = (SELECT FROM WHERE)\nINSERT INTO t (a) VALUES (@a)")
    assert found.opaque + found.partial > 0


def test_calls_without_exec_at_the_head_of_a_batch() -> None:
    found = _extract("dbo.load @day = '2020-01-01', @full = 1\nGO\nsp_rename 'dbo.t.a', 'b', 'COLUMN'")
    assert _codes(found) == ["opaque"]
    assert "calls dbo.load, which no script here defines" in found.diagnostics[0].message
    assert lines_of(found) == ["! opaque", "dbo.t.b <- dbo.t.a identity"]


def test_partitions_that_are_switched_move_their_rows() -> None:
    found = _lines(
        """
        CREATE TABLE a (x int); CREATE TABLE b (x int);
        ALTER TABLE a SWITCH PARTITION 3 TO b PARTITION $PARTITION.pf(4) WITH (WAIT_AT_LOW_PRIORITY (MAX_DURATION = 1))
        """
    )
    assert found == ["b.* <- a read", "b.x <- a.x identity"]


def test_routines_in_another_language_are_not_read_as_sql() -> None:
    found = _extract(
        """
        CREATE FUNCTION dbo.f(@u nvarchar(max)) RETURNS nvarchar(max) AS EXTERNAL NAME a.b.c
        GO
        CREATE PROCEDURE dbo.p(@u nvarchar(max)) AS EXTERNAL NAME a.b.d
        GO
        INSERT INTO t (a) SELECT dbo.f(u) FROM s
        """
    )
    assert [(note.code, note.severity) for note in found.diagnostics] == [("opaque", "info"), ("opaque", "warning")]
    assert "t.a <- s.u transformation" in lines_of(found)


def test_what_a_queue_is_sent_is_not_followed() -> None:
    found = _extract(
        "ALTER TABLE t DROP COLUMN a\nSEND ON CONVERSATION @h MESSAGE TYPE m (@b)\nINSERT INTO t (a) SELECT b FROM s"
    )
    assert "t.a <- s.b identity" in lines_of(found)
    assert _codes(found) == ["opaque"]


def test_masks_of_columns_change_no_columns() -> None:
    found = _extract(
        "ALTER TABLE t ALTER COLUMN c ADD MASKED WITH (FUNCTION = 'email()')\nALTER TABLE t ALTER COLUMN c DROP MASKED"
    )
    assert (found.ignored, found.statements) == (2, 0)


def test_columns_of_json_that_are_called_like_a_hint() -> None:
    assert _lines(
        "INSERT INTO t (a) SELECT j.snapshot FROM s CROSS APPLY OPENJSON(s.d) WITH (snapshot int '$.a', b int) AS j "
        "OPTION (USE HINT('x'))"
    ) == ["t.* <- s read, s.d filter", "t.a <- s.d transformation"]


# -- dynamic SQL in variables -----------------------------------------------------------------------------------------


def _dynamic(body: str) -> list[str]:
    found = _extract(f"CREATE PROCEDURE p @k int AS\nBEGIN\nDECLARE @s nvarchar(max)\n{dedent(body)}\nEND")
    return sorted({d.target for d in found.derivations} | {f"! {code}" for code in _codes(found)})


@pytest.mark.parametrize(
    "body",
    [
        "SET @s = N'INSERT INTO t (a) SELECT b FROM s' EXEC (@s)",
        "SET @s = N'INSERT INTO t (a) ' + N'SELECT b FROM s' EXEC sp_executesql @s",
        "SET @s = 'INSERT INTO t (a) ' SET @s += 'SELECT b ' SET @s = @s + 'FROM s' EXEC sys.sp_executesql @stmt = @s",
        "DECLARE @n int = 1, @q varchar(99) = 'INSERT INTO t (a) SELECT b FROM s' EXECUTE (@q)",
        "SELECT @s = N'INSERT INTO t (a) SELECT b FROM s' IF @k = 1 BEGIN PRINT @s EXEC (@s) END",
        "WHILE @k < 3 BEGIN SET @s = N'INSERT INTO t (a) SELECT b FROM s' EXEC (@s) END",
        "SET @s = N'INSERT INTO t (a) SELECT b FROM s WHERE c = @i' EXEC sp_executesql @s, N'@i int', @i = @k",
    ],
)
def test_constant_text_of_a_variable_is_read(body: str) -> None:
    assert _dynamic(body) == ["t"]


@pytest.mark.parametrize(
    "body",
    [
        "SET @s = N'DELETE t' IF @k = 1 SET @s = N'DELETE u' EXEC (@s)",
        "IF @k = 1 SET @s = N'DELETE t' EXEC (@s)",
        "SET @s = N'DELETE t' WHILE @k < 3 BEGIN EXEC (@s) SET @s = N'DELETE u' END",
        "SET @s = N'DELETE t' SET @s = @s + @k EXEC (@s)",
        "SET @s = N'DELETE t' SET @s = REPLACE(@s, 't', 'u') EXEC (@s)",
        "SET @s = N'DELETE t' EXEC other @s OUTPUT EXEC (@s)",
        "SET @s = N'DELETE t' SELECT @s = d FROM e EXEC (@s)",
        "SET @s = N'DELETE t' FETCH NEXT FROM c INTO @s EXEC (@s)",
        "SET @s = N'DELETE t' BEGIN TRY SET @s = N'DELETE u' END TRY BEGIN CATCH EXEC (@s) END CATCH",
        "SET @s = N'DELETE t' EXEC (@s) AT far",
        "again: EXEC (@s) SET @s = N'DELETE t' EXEC (@s) SET @s = N'DELETE u' GOTO again",
    ],
)
def test_text_that_may_be_another_is_not_read(body: str) -> None:
    assert "t" not in _dynamic(body)
    assert "! opaque" in _dynamic(body)


def test_a_variable_ends_with_its_batch() -> None:
    found = _extract("DECLARE @s varchar(9) = 'DELETE t'\nGO\nEXEC (@s)")
    assert not found.derivations
    assert _codes(found) == ["opaque"]


# -- templates -------------------------------------------------------------------------------------------------------


def test_parameters_of_templates_stand_for_their_values() -> None:
    found = _extract(
        """
        INSERT INTO <schema_name, sysname, dbo>.<table_name, sysname, t> (a)
        SELECT <column-1, , x> FROM dbo.s_<suffix, nvarchar(50), now>_all WHERE y > <minimum, int, 3>
        """
    )
    assert lines_of(found) == [
        "dbo.t.* <- dbo.s_now_all read, dbo.s_now_all.y filter",
        "dbo.t.a <- dbo.s_now_all.x identity",
    ]


def test_a_parameter_without_a_value_leaves_nothing() -> None:
    assert simplified(lexer("tsql").tokenize("<statement, , >"), "tsql") == []
    assert _codes(_extract("<statement, , >")) == ["parse-error"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT CASE WHEN a < 5 THEN 1 END, b, c > 4",
        "SELECT a < b.c, d, e > f",
        "SELECT 1 WHERE a < 'x', b, c > d",
        "SELECT a < b, (c, d > e",
    ],
)
def test_comparisons_are_no_parameters(text: str) -> None:
    tokens = lexer("tsql").tokenize(text)
    assert rendered(tokens) is tokens


def test_text_that_doubles_without_end_is_given_up():
    text = "set @s = N'insert into u select a from t'\n" + "set @s = @s + @s\n" * 60 + "exec (@s)"
    assert parse_script(text, "tsql")[-1].status == "opaque"
    found = parse_script("set @s = N'insert into u '\nset @s += N'select a from t'\nexec (@s)", "tsql")
    assert [s.text for s in found if s.status == "parsed" and s.head == "insert"]


def test_temporary_tables_that_nobody_made_are_of_their_own_session() -> None:
    text = "INSERT INTO d (x) SELECT a FROM #n"
    found = extract([Script("one.sql", text), Script("two.sql", text)], Options(dialect="tsql"))
    sources = {d.statement.file: {edge.source.dataset for edge in d.edges} for d in found.derivations}
    assert sources == {"one.sql": {'temp."one.sql".n'}, "two.sql": {'temp."two.sql".n'}}


def test_scripts_that_sqlcmd_includes() -> None:
    text = ':setvar path lib\n:r $(path)\\known.sql\n:r "a file.sql"\n:r\nGO\n:on error exit\nSELECT 1 AS a'
    scripts = [Script("main.sql", text), Script("lib/known.sql", "SELECT 2 AS b")]
    found = extract(scripts, Options(dialect="tsql")).diagnostics
    assert [(note.file, note.line) for note in found if "a file.sql" in note.message] == [("main.sql", 3)]
    assert [note.severity for note in found] == ["info", "warning"]  # one of them is read
