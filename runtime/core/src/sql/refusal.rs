//! Why a text was refused: one named rule each, with the place in the text and how to mend it.

use std::fmt;

/// A place in a text, counted in characters from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A refused text: the rule, the place, and a message for the plugin's author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{} ({})", place(.at), rule.code())]
pub struct Refusal {
    /// The rule that refuses.
    pub rule: Rule,
    /// Where in the text, if it is one place.
    pub at: Option<At>,
    /// What was found and how to mend it; lower case, no full stop.
    pub message: String,
}

fn place(at: &Option<At>) -> String {
    at.map(|at| format!(" at {at}")).unwrap_or_default()
}

impl Refusal {
    /// Builds the message from what was found and the rule's own way to mend it.
    pub(super) fn new(rule: Rule, at: impl Into<Option<At>>, found: impl fmt::Display) -> Refusal {
        Refusal { rule, at: at.into(), message: format!("{found}: {}", rule.explain()) }
    }
}

/// Declares every rule once: variant, code, and how to mend.
macro_rules! rules {
    ($($variant:ident $code:literal $explain:literal)*) => {
        /// The named reasons of the gate; the code is also the heading's key in `docs/sql-gate.md`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = concat!("`", $code, "`; [`Rule::explain`] says how to mend it.")] $variant,)*
        }

        impl Rule {
            /// Every rule, in the order of the documentation.
            pub const ALL: &[Rule] = &[$(Rule::$variant),*];

            /// The stable name, kebab-case.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self { $(Rule::$variant => $code,)* }
            }

            /// How to mend it, in one sentence, lower case and without a full stop.
            #[must_use]
            pub fn explain(self) -> &'static str {
                match self { $(Rule::$variant => $explain,)* }
            }
        }
    };
}

rules! {
    // the text
    TooLarge "too-large" "shorten the text to at most 65536 bytes, 4096 tokens, 256 operators, 16 joins, 16 nested parentheses and 128 nested or chained expressions"
    Comment "comment" "remove the comment, the manifest has room for it; some comments run on some servers, so none is allowed"
    ControlCharacter "control-character" "use only spaces, tabs and line ends as white space, and pass other characters as a parameter"
    NonAscii "non-ascii" "write ASCII outside of string literals, and rename what is not or pass it as a parameter"
    DoubleQuote "double-quote" "use single quotes for text and backticks for names, since double quotes mean one on MySQL and the other on SQLite"
    StringLiteral "string-literal" "close the literal, write it as one '…' without prefix or character set, or pass it as a parameter"
    Number "number" "write digits with at most one decimal point between them, or pass the number as a parameter"
    Semicolon "semicolon" "write one statement without any semicolon; two statements need two entries in the manifest"
    Placeholder "placeholder" "write every parameter as a bare ? where a value stands, in the order of params"
    Variable "variable" "pass the value as a parameter; user and system variables outlive the event or change the session"
    Symbol "symbol" "remove the character; only ( ) , . = < > + - * / % & | and their pairs stand outside of literals and names"
    Identifier "identifier" "use names of at most 64 letters, digits and _, not beginning with a digit, in backticks if need be"
    ReservedWord "reserved-word" "put the name in backticks if it is a name, or leave the clause out"
    HostName "host-name" "choose another name; names that begin with ob_ belong to the host, and sqlite_ to SQLite"
    // what kind of statement
    Verb "verb" "write one INSERT, UPDATE or DELETE as a statement, or one SELECT as a query"
    Syntax "syntax" "write the statement in the syntax that docs/sql-gate.md lists"
    Disagreement "disagreement" "write it more plainly, with spaces between operators and without unusual keywords"
    Construct "construct" "use only the constructs that docs/sql-gate.md lists"
    QualifiedName "qualified-name" "name the table alone; each tenant has a database of its own, and nothing outside of it may be named"
    ManyTables "many-tables" "write one table a statement; use two statements, or a subquery in WHERE"
    // clauses
    Ignore "ignore" "leave IGNORE or OR … out; it hides errors that decide what becomes of the event"
    Modifier "modifier" "leave the modifier out, or put the name in backticks if it is a name"
    Into "into" "leave INTO out; a query answers rows and writes neither files nor variables"
    Returning "returning" "leave RETURNING out; a staged write answers nothing"
    TableStatement "table-statement" "write SELECT columns FROM the table"
    Cte "cte" "write the common table expression as a subquery"
    Union "union" "write two queries"
    Window "window-function" "use GROUP BY, or compute it in the plugin"
    Partition "partition" "leave PARTITION out and use WHERE"
    IndexHint "index-hint" "leave the index hint out"
    Collate "collate" "leave COLLATE out and give the column the collation"
    Join "join" "write JOIN, LEFT JOIN or RIGHT JOIN with ON or USING"
    FromMissing "from-missing" "read from a table"
    Function "function" "use a function of the list in docs/sql-gate.md, its name unquoted and directly before the parenthesis"
    LastInsertId "last-insert-id" "write LAST_INSERT_ID() without an argument, and only for MySQL"
    CastType "cast-type" "cast to one of the types that docs/sql-gate.md lists for the dialect"
    Operator "operator" "use an operator that docs/sql-gate.md lists for the dialect"
    WhereMissing "where-missing" "add a WHERE that compares a column with a parameter"
    WhereColumn "where-column" "compare a bare column with a parameter or literal, on every side of an OR"
    Limit "limit" "give LIMIT a whole number or ?; an UPDATE or DELETE takes it on MySQL only and after ORDER BY"
    InsertColumns "insert-columns" "name the columns: INSERT INTO t (a, b) VALUES (?, ?)"
    InsertSource "insert-source" "insert with VALUES (…); rows of a SELECT cannot be counted beforehand"
    ConflictClause "conflict-clause" "write ON DUPLICATE KEY UPDATE for MySQL, and ON CONFLICT (columns) DO UPDATE SET without WHERE for SQLite"
    LockMissing "lock-missing" "end the MySQL text in FOR UPDATE, or remove lock = true"
    LockUndeclared "lock-undeclared" "add lock = true to the query, or remove FOR UPDATE"
    LockOption "lock-option" "lock with a plain FOR UPDATE at the very end of the query"
    LockSqlite "lock-sqlite" "give the query a sqlite text of its own without FOR UPDATE; SQLite has one writer at a time"
    // against the manifest
    ParameterCount "parameter-count" "make the ? of the text and the params of the manifest equal in number"
    RowsExpectation "rows-expectation" "use rows = \"any\" or \"one-key\" with an upsert, and \"one-key\" only with an upsert of one row"
    TableUndeclared "table-undeclared" "add the table to [tables] in the manifest"
    TableReadOnly "table-read-only" "declare the table as \"write\" in [tables] of the manifest"
    // against the operator's list and the catalogue
    TableUnlisted "table-unlisted" "ask the operator to add the table to the handler's tables"
    CatalogueIncomplete "catalogue-incomplete" "run oncebox migrate, which makes the procedure ob_catalogue, and let the host's user execute it"
    TableUnknown "table-unknown" "create the table, or mend its name; names are compared with upper and lower case"
    TableKind "table-kind" "name a base table; a view, temporary, virtual or system table hides what is written"
    TableEngine "table-engine" "convert the table to InnoDB; another engine does not roll back"
    Trigger "trigger" "drop the trigger, or ask the operator to name it as table.trigger"
    Cascade "cascade" "let the operator list and the manifest declare as \"write\" every table that the foreign keys reach"
}
