//! The gate's lists of words: which are refused wherever they stand, which are names only in backticks, and which
//! keywords a text may have.

use super::refusal::Rule;

/// The rule that refuses an unquoted word wherever it stands, whatever the parser would make of it.
///
/// Some are no reserved words of MySQL, so that the parser reads them as names where the server reads a modifier
/// (`UPDATE LOW_PRIORITY t`): a column of that name stands in backticks.
pub(super) fn refused_word(upper: &str) -> Option<Rule> {
    Some(match upper {
        "IGNORE" => Rule::Ignore,
        "LOW_PRIORITY"
        | "HIGH_PRIORITY"
        | "DELAYED"
        | "QUICK"
        | "CONCURRENT"
        | "STRAIGHT_JOIN"
        | "SQL_CACHE"
        | "SQL_NO_CACHE"
        | "SQL_CALC_FOUND_ROWS"
        | "SQL_BUFFER_RESULT"
        | "SQL_SMALL_RESULT"
        | "SQL_BIG_RESULT"
        | "DISTINCTROW" => Rule::Modifier,
        "OUTFILE" | "DUMPFILE" => Rule::Into,
        "RETURNING" => Rule::Returning,
        "TABLE" => Rule::TableStatement,
        "RECURSIVE" => Rule::Cte,
        "UNION" | "EXCEPT" | "INTERSECT" | "MINUS" => Rule::Union,
        "OVER" | "WINDOW" | "QUALIFY" => Rule::Window,
        "PARTITION" => Rule::Partition,
        "USE" | "FORCE" | "INDEXED" => Rule::IndexHint,
        "COLLATE" => Rule::Collate,
        "NATURAL" => Rule::Join,
        "LOCK" | "SHARE" | "NOWAIT" => Rule::LockOption,
        "REGEXP" | "RLIKE" | "GLOB" | "MATCH" | "SOUNDS" | "XOR" => Rule::Operator,
        "PROCEDURE" | "LATERAL" | "PIVOT" | "UNPIVOT" | "RAISE" => Rule::Construct,
        _ => return None,
    })
}

/// Whether an unquoted word may stand in a text without being a name that the walk has seen.
pub(super) fn is_keyword(upper: &str) -> bool {
    KEYWORDS.contains(&upper)
}

#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "SELECT", "DISTINCT", "FROM", "AS", "JOIN", "INNER", "LEFT", "RIGHT", "OUTER", "ON", "USING", "WHERE", "AND",
    "OR", "NOT", "IN", "EXISTS", "BETWEEN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE", "CASE", "WHEN", "THEN",
    "ELSE", "END", "GROUP", "BY", "HAVING", "ORDER", "ASC", "DESC", "LIMIT", "OFFSET", "FOR", "UPDATE", "INSERT",
    "INTO", "VALUES", "SET", "DELETE", "DUPLICATE", "KEY", "CONFLICT", "DO", "DIV", "MOD", "CAST", "EXTRACT",
    "CEIL", "FLOOR", "SUBSTR", "SUBSTRING", "TRIM", "BOTH", "LEADING", "TRAILING", "POSITION", "INTERVAL", "YEAR",
    "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND", "SIGNED", "UNSIGNED", "INTEGER",
    "CHAR", "DECIMAL", "DATE", "TIME", "DATETIME", "JSON", "DOUBLE", "FLOAT", "TEXT", "REAL", "NUMERIC", "BLOB",
];

/// Whether the word is a function that the parser does not hand over as a call by name.
pub(super) fn is_special_function(upper: &str) -> bool {
    ["CAST", "EXTRACT", "CEIL", "FLOOR", "SUBSTR", "SUBSTRING", "TRIM", "POSITION"].contains(&upper)
}

/// Whether MySQL 9 or SQLite reserves the word, so that unquoted it may be read as something else than a name.
///
/// Source: MySQL 9 reference manual, "Keywords and Reserved Words", the words marked (R); SQLite's are among them
/// but for those at the end, with MariaDB's.
pub(super) fn is_reserved(upper: &str) -> bool {
    RESERVED.contains(&upper)
}

#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "ACCESSIBLE", "ADD", "ALL", "ALTER", "ANALYZE", "AND", "AS", "ASC", "ASENSITIVE", "BEFORE", "BETWEEN", "BIGINT",
    "BINARY", "BLOB", "BOTH", "BY", "CALL", "CASCADE", "CASE", "CHANGE", "CHAR", "CHARACTER", "CHECK", "COLLATE",
    "COLUMN", "CONDITION", "CONSTRAINT", "CONTINUE", "CONVERT", "CREATE", "CROSS", "CUBE", "CUME_DIST",
    "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "CURSOR", "DATABASE", "DATABASES",
    "DAY_HOUR", "DAY_MICROSECOND", "DAY_MINUTE", "DAY_SECOND", "DEC", "DECIMAL", "DECLARE", "DEFAULT", "DELAYED",
    "DELETE", "DENSE_RANK", "DESC", "DESCRIBE", "DETERMINISTIC", "DISTINCT", "DISTINCTROW", "DIV", "DOUBLE", "DROP",
    "DUAL", "EACH", "ELSE", "ELSEIF", "EMPTY", "ENCLOSED", "ESCAPED", "EXCEPT", "EXISTS", "EXIT", "EXPLAIN", "EXTERNAL",
    "FALSE", "FETCH", "FIRST_VALUE", "FLOAT", "FLOAT4", "FLOAT8", "FOR", "FORCE", "FOREIGN", "FROM", "FULLTEXT",
    "FUNCTION", "GENERATED", "GET", "GRANT", "GROUP", "GROUPING", "GROUPS", "HAVING", "HIGH_PRIORITY",
    "HOUR_MICROSECOND", "HOUR_MINUTE", "HOUR_SECOND", "IF", "IGNORE", "IN", "INDEX", "INFILE", "INNER", "INOUT",
    "INSENSITIVE", "INSERT", "INT", "INT1", "INT2", "INT3", "INT4", "INT8", "INTEGER", "INTERSECT", "INTERVAL",
    "INTO", "IO_AFTER_GTIDS", "IO_BEFORE_GTIDS", "IS", "ITERATE", "JOIN", "JSON_TABLE", "KEY", "KEYS", "KILL",
    "LAG", "LAST_VALUE", "LATERAL", "LEAD", "LEADING", "LEAVE", "LEFT", "LIBRARY", "LIKE", "LIMIT", "LINEAR",
    "LINES", "LOAD", "LOCALTIME", "LOCALTIMESTAMP", "LOCK", "LONG", "LONGBLOB", "LONGTEXT", "LOOP", "LOW_PRIORITY",
    "MANUAL", "MASTER_BIND", "MASTER_SSL_VERIFY_SERVER_CERT", "MATCH", "MAXVALUE", "MEDIUMBLOB", "MEDIUMINT",
    "MEDIUMTEXT", "MIDDLEINT", "MINUTE_MICROSECOND", "MINUTE_SECOND", "MOD", "MODIFIES", "NATURAL", "NOT",
    "NO_WRITE_TO_BINLOG", "NTH_VALUE", "NTILE", "NULL", "NUMERIC", "OF", "ON", "OPTIMIZE", "OPTIMIZER_COSTS",
    "OPTION", "OPTIONALLY", "OR", "ORDER", "OUT", "OUTER", "OUTFILE", "OVER", "PARALLEL", "PARTITION",
    "PERCENT_RANK", "PRECISION", "PRIMARY", "PROCEDURE", "PURGE", "QUALIFY", "RANGE", "RANK", "READ", "READS",
    "READ_WRITE", "REAL", "RECURSIVE", "REFERENCES", "REGEXP", "RELEASE", "RENAME", "REPEAT", "REPLACE", "REQUIRE",
    "RESIGNAL", "RESTRICT", "RETURN", "REVOKE", "RIGHT", "RLIKE", "ROW", "ROWS", "ROW_NUMBER", "SCHEMA", "SCHEMAS",
    "SECOND_MICROSECOND", "SELECT", "SENSITIVE", "SEPARATOR", "SET", "SETS", "SHOW", "SIGNAL", "SMALLINT",
    "SPATIAL", "SPECIFIC", "SQL", "SQLEXCEPTION", "SQLSTATE", "SQLWARNING", "SQL_BIG_RESULT", "SQL_CALC_FOUND_ROWS",
    "SQL_SMALL_RESULT", "SSL", "STARTING", "STORED", "STRAIGHT_JOIN", "SYSTEM", "TABLE", "TABLESAMPLE",
    "TERMINATED", "THEN", "TINYBLOB", "TINYINT", "TINYTEXT", "TO", "TRAILING", "TRIGGER", "TRUE", "UNDO", "UNION",
    "UNIQUE", "UNLOCK", "UNSIGNED", "UPDATE", "USAGE", "USE", "USING", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP",
    "VALUES", "VARBINARY", "VARCHAR", "VARCHARACTER", "VARYING", "VIRTUAL", "WHEN", "WHERE", "WHILE", "WINDOW",
    "WITH", "WRITE", "XOR", "YEAR_MONTH", "ZEROFILL", "CURRENT_ROLE", "SESSION_USER", "SYSTEM_USER", "USER",
    "RETURNING", "OFFSET", "AUTOINCREMENT", "COMMIT", "DEFERRABLE", "ESCAPE", "ISNULL", "NOTHING", "NOTNULL",
    "TRANSACTION", "PAGE_CHECKSUM", "SLOW",
];
