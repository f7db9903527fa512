//! INSERT, UPDATE and DELETE: one table, and no clause but those named.

use sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, Delete, DoUpdate, Expr, FromTable, Insert, InsertAliases, ObjectName,
    ObjectNamePart, OnConflict, OnConflictAction, OnInsert, OrderByExpr, Parens, Query, SetExpr, Spanned, TableFactor,
    TableObject, TableWithJoins, Update, Values,
};

use super::condition::{self, Other};
use super::parse::place;
use super::refusal::{At, Refusal, Rule};
use super::walk::{Walk, construct, refuse_clauses};
use super::{Dialect, Verb};

/// What an INSERT turned out to be.
pub(super) struct InsertShape {
    pub(super) upsert: bool,
    pub(super) rows: usize,
}

impl Walk<'_> {
    pub(super) fn insert(&mut self, insert: &Insert) -> Result<InsertShape, Refusal> {
        let Insert {
            insert_token,
            optimizer_hints,
            or,
            ignore,
            into,
            table,
            table_alias,
            columns,
            by_name,
            overwrite,
            source,
            assignments,
            partitioned,
            after_columns,
            overriding,
            has_table_keyword,
            on,
            returning,
            output,
            replace_into,
            priority,
            insert_alias,
            settings,
            format_clause,
            multi_table_insert_type,
            multi_table_into_clauses,
            multi_table_when_clauses,
            multi_table_else_clause,
        } = insert;
        let at = place(insert_token.0.span.start);
        refuse_clauses(
            at,
            &[
                (!optimizer_hints.is_empty(), Rule::Comment, "an optimizer hint"),
                (or.is_some(), Rule::Ignore, "INSERT OR …"),
                (*ignore, Rule::Ignore, "INSERT IGNORE"),
                (!*into, Rule::Syntax, "INSERT without INTO"),
                (table_alias.is_some(), Rule::Construct, "an alias of the inserted table"),
                (*by_name, Rule::Construct, "BY NAME"),
                (*overwrite, Rule::Construct, "OVERWRITE"),
                (!assignments.is_empty(), Rule::InsertSource, "INSERT … SET"),
                (partitioned.is_some(), Rule::Partition, "PARTITION"),
                (!after_columns.is_empty(), Rule::Construct, "columns behind PARTITION"),
                (overriding.is_some(), Rule::Construct, "OVERRIDING"),
                (*has_table_keyword, Rule::TableStatement, "INSERT INTO TABLE"),
                (returning.is_some(), Rule::Returning, "RETURNING"),
                (output.is_some(), Rule::Returning, "OUTPUT"),
                (*replace_into, Rule::Verb, "REPLACE"),
                (priority.is_some(), Rule::Modifier, "a priority"),
                (settings.is_some(), Rule::Construct, "SETTINGS"),
                (format_clause.is_some(), Rule::Construct, "FORMAT"),
                (multi_table_insert_type.is_some(), Rule::ManyTables, "INSERT ALL or FIRST"),
                (!multi_table_into_clauses.is_empty(), Rule::ManyTables, "several INTO"),
                (!multi_table_when_clauses.is_empty(), Rule::ManyTables, "WHEN … INTO"),
                (multi_table_else_clause.is_some(), Rule::ManyTables, "ELSE INTO"),
                (columns.is_empty(), Rule::InsertColumns, "INSERT without a list of columns"),
            ],
        )?;
        self.insert_target(table, columns)?;
        let Some(source) = source else {
            return Err(Refusal::new(Rule::InsertSource, at, "INSERT without VALUES"));
        };
        let rows = self.insert_values(source, at)?;
        insert_alias.iter().try_for_each(|alias| self.row_alias(alias))?;
        on.iter().try_for_each(|on| self.upsert(on, at))?;
        Ok(InsertShape { upsert: on.is_some(), rows })
    }

    fn insert_target(&mut self, table: &TableObject, columns: &[ObjectName]) -> Result<(), Refusal> {
        match table {
            TableObject::TableName(name) => self.table(name, true)?,
            TableObject::TableFunction(function) => return Err(construct(function)),
            TableObject::TableQuery(query) => return Err(construct(query.as_ref())),
        }
        columns.iter().try_for_each(|column| self.column(column))
    }

    /// `AS new (a, b)` behind VALUES.
    fn row_alias(&mut self, alias: &InsertAliases) -> Result<(), Refusal> {
        let InsertAliases { row_alias, col_aliases } = alias;
        let [ObjectNamePart::Identifier(name)] = row_alias.0.as_slice() else {
            return Err(construct(row_alias));
        };
        self.name(name)?;
        col_aliases.iter().flatten().try_for_each(|name| self.name(name))
    }

    /// The rows of VALUES, and nothing else that a query might be.
    fn insert_values(&mut self, source: &Query, at: Option<At>) -> Result<usize, Refusal> {
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = source;
        let plain = with.is_none()
            && order_by.is_none()
            && limit_clause.is_none()
            && fetch.is_none()
            && locks.is_empty()
            && for_clause.is_none()
            && settings.is_none()
            && format_clause.is_none()
            && pipe_operators.is_empty();
        let SetExpr::Values(Values { explicit_row: false, value_keyword: false, rows }) = body.as_ref() else {
            return Err(Refusal::new(Rule::InsertSource, at, "a source of rows other than VALUES (…)"));
        };
        if !plain {
            return Err(Refusal::new(Rule::InsertSource, at, "a clause behind VALUES (…)"));
        }
        for row in rows {
            let Parens { opening_token: _, content, closing_token: _ } = row;
            content.iter().try_for_each(|value| self.stored_value(value))?;
        }
        Ok(rows.len())
    }

    /// ON DUPLICATE KEY UPDATE, or ON CONFLICT with its columns named.
    ///
    /// DO NOTHING is refused as IGNORE is: whether the key existed would be lost, and `rows` could not tell.
    fn upsert(&mut self, on: &OnInsert, at: Option<At>) -> Result<(), Refusal> {
        let refuse = |found: &str| Err(Refusal::new(Rule::ConflictClause, at, found));
        match (on, self.dialect) {
            (OnInsert::DuplicateKeyUpdate(assignments), Dialect::MySql) => {
                self.in_upsert = true;
                let result = self.assignments(assignments);
                self.in_upsert = false;
                result
            }
            (OnInsert::OnConflict(OnConflict { conflict_target, action }), Dialect::Sqlite) => {
                match conflict_target {
                    Some(ConflictTarget::Columns { columns, predicate: None }) => {
                        columns.iter().try_for_each(|column| self.name(column))?;
                    }
                    Some(ConflictTarget::Columns { columns: _, predicate: Some(_) }) => {
                        return refuse("ON CONFLICT (…) WHERE");
                    }
                    Some(ConflictTarget::OnConstraint(_)) => return refuse("ON CONFLICT ON CONSTRAINT"),
                    None => return refuse("ON CONFLICT without columns"),
                }
                match action {
                    OnConflictAction::DoUpdate(DoUpdate { assignments, selection: None }) => {
                        self.assignments(assignments)
                    }
                    OnConflictAction::DoUpdate(DoUpdate { assignments: _, selection: Some(_) }) => {
                        refuse("DO UPDATE … WHERE")
                    }
                    OnConflictAction::DoNothing => refuse("DO NOTHING"),
                }
            }
            (OnInsert::DuplicateKeyUpdate(_), Dialect::Sqlite) => refuse("ON DUPLICATE KEY UPDATE on SQLite"),
            (OnInsert::OnConflict(_), Dialect::MySql) => refuse("ON CONFLICT on MySQL"),
            (other, _) => Err(construct(other)),
        }
    }

    pub(super) fn update(&mut self, update: &Update) -> Result<(), Refusal> {
        let Update {
            update_token,
            optimizer_hints,
            table,
            on_cluster,
            assignments,
            from,
            selection,
            returning,
            output,
            or,
            order_by,
            limit,
            settings,
        } = update;
        let at = place(update_token.0.span.start);
        refuse_clauses(
            at,
            &[
                (!optimizer_hints.is_empty(), Rule::Comment, "an optimizer hint"),
                (on_cluster.is_some(), Rule::Construct, "ON CLUSTER"),
                (from.is_some(), Rule::ManyTables, "UPDATE … FROM"),
                (returning.is_some(), Rule::Returning, "RETURNING"),
                (output.is_some(), Rule::Returning, "OUTPUT"),
                (or.is_some(), Rule::Ignore, "UPDATE OR …"),
                (settings.is_some(), Rule::Construct, "SETTINGS"),
            ],
        )?;
        self.written_table(table, at, Verb::Update)?;
        self.assignments(assignments)?;
        self.write_condition(selection.as_ref(), at, Verb::Update)?;
        self.write_limit(order_by, limit.as_ref(), at)
    }

    pub(super) fn delete(&mut self, delete: &Delete) -> Result<(), Refusal> {
        let Delete {
            delete_token,
            optimizer_hints,
            tables,
            from,
            on_cluster,
            using,
            selection,
            returning,
            output,
            order_by,
            limit,
            settings,
        } = delete;
        let at = place(delete_token.0.span.start);
        refuse_clauses(
            at,
            &[
                (!optimizer_hints.is_empty(), Rule::Comment, "an optimizer hint"),
                (!tables.is_empty(), Rule::ManyTables, "DELETE t FROM …"),
                (on_cluster.is_some(), Rule::Construct, "ON CLUSTER"),
                (using.is_some(), Rule::ManyTables, "DELETE … USING"),
                (returning.is_some(), Rule::Returning, "RETURNING"),
                (output.is_some(), Rule::Returning, "OUTPUT"),
                (settings.is_some(), Rule::Construct, "SETTINGS"),
            ],
        )?;
        let FromTable::WithFromKeyword(from) = from else {
            return Err(Refusal::new(Rule::Syntax, at, "DELETE without FROM"));
        };
        let [table] = from.as_slice() else {
            return Err(Refusal::new(Rule::ManyTables, at, "DELETE from several tables"));
        };
        self.written_table(table, at, Verb::Delete)?;
        self.write_condition(selection.as_ref(), at, Verb::Delete)?;
        self.write_limit(order_by, limit.as_ref(), at)
    }

    fn written_table(&mut self, table: &TableWithJoins, at: Option<At>, verb: Verb) -> Result<(), Refusal> {
        let TableWithJoins { relation, joins } = table;
        if !joins.is_empty() || !matches!(relation, TableFactor::Table { .. }) {
            return Err(Refusal::new(Rule::ManyTables, at, format!("{verb} of a join or of a subquery")));
        }
        self.table_factor(relation, true)
    }

    fn assignments(&mut self, assignments: &[Assignment]) -> Result<(), Refusal> {
        for Assignment { target, value } in assignments {
            match target {
                AssignmentTarget::ColumnName(column) => self.column(column)?,
                AssignmentTarget::Tuple(_) => return Err(construct(target)),
            }
            self.stored_value(value)?;
        }
        Ok(())
    }

    fn write_condition(&mut self, selection: Option<&Expr>, at: Option<At>, verb: Verb) -> Result<(), Refusal> {
        let Some(condition) = selection else {
            return Err(Refusal::new(Rule::WhereMissing, at, format!("{verb} without WHERE")));
        };
        self.expression(condition)?;
        condition::check(condition, Other::Value)
    }

    /// LIMIT without ORDER BY would let two replays touch different rows.
    fn write_limit(&mut self, order_by: &[OrderByExpr], limit: Option<&Expr>, at: Option<At>) -> Result<(), Refusal> {
        if (limit.is_some() || !order_by.is_empty()) && self.dialect == Dialect::Sqlite {
            return Err(Refusal::new(Rule::Limit, at, "ORDER BY or LIMIT of a write on SQLite"));
        }
        self.order(order_by)?;
        let Some(limit) = limit else { return Ok(()) };
        if order_by.is_empty() {
            return Err(Refusal::new(Rule::Limit, place(limit.span().start), "LIMIT without ORDER BY"));
        }
        self.limit_value(limit)
    }
}
