//! SELECT, at the top of a query or inside of an expression: tables, joins, grouping, order, limit, lock.

use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Join, JoinConstraint, JoinOperator, LimitClause, LockClause, LockType, Offset,
    OffsetRows, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, OrderBySort, Query, Select, SelectFlavor,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Spanned, TableFactor, TableWithJoins, Value, ValueWithSpan,
    WildcardAdditionalOptions,
};

use super::Dialect;
use super::condition::{self, Other};
use super::parse::place;
use super::refusal::{At, Refusal, Rule};
use super::walk::{Walk, construct, kind, refuse_clauses};

impl Walk<'_> {
    /// The query of a manifest; answers whether it ends in FOR UPDATE.
    pub(super) fn top_query(&mut self, query: &Query) -> Result<bool, Refusal> {
        self.any_query(query, Other::Value)?;
        self.lock(&query.locks)
    }

    /// A query inside of another; its WHERE may compare with a column of the outer one.
    pub(super) fn inner_query(&mut self, query: &Query) -> Result<(), Refusal> {
        if let Some(lock) = query.locks.first() {
            let at = place(query.span().start);
            return Err(Refusal::new(Rule::LockOption, at, format!("{lock} inside of a subquery")));
        }
        self.deeper(place(query.span().start), |walk| walk.any_query(query, Other::NotItself))
    }

    /// All of a query but its locks, which both callers judge.
    fn any_query(&mut self, query: &Query, other: Other) -> Result<(), Refusal> {
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks: _,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        let at = place(query.span().start);
        refuse_clauses(
            at,
            &[
                (with.is_some(), Rule::Cte, "WITH"),
                (fetch.is_some(), Rule::Construct, "FETCH"),
                (for_clause.is_some(), Rule::Construct, "FOR XML, JSON or BROWSE"),
                (settings.is_some(), Rule::Construct, "SETTINGS"),
                (format_clause.is_some(), Rule::Construct, "FORMAT"),
                (!pipe_operators.is_empty(), Rule::Construct, "a pipe operator"),
            ],
        )?;
        match body.as_ref() {
            SetExpr::Select(select) => self.select(select, other)?,
            SetExpr::SetOperation { left: _, op, set_quantifier: _, right: _ } => {
                return Err(Refusal::new(Rule::Union, at, op));
            }
            SetExpr::Table(_) => return Err(Refusal::new(Rule::TableStatement, at, "TABLE as a query")),
            SetExpr::Query(_)
            | SetExpr::Values(_)
            | SetExpr::Insert(_)
            | SetExpr::Update(_)
            | SetExpr::Delete(_)
            | SetExpr::Merge(_) => return Err(construct(body.as_ref())),
        }
        if let Some(order_by) = order_by {
            let OrderBy { kind, interpolate } = order_by;
            match (kind, interpolate) {
                (OrderByKind::Expressions(order), None) => self.order(order)?,
                (OrderByKind::Expressions(_), Some(_)) | (OrderByKind::All(_), _) => return Err(construct(order_by)),
            }
        }
        limit_clause.iter().try_for_each(|limit| self.limit(limit))
    }

    fn select(&mut self, select: &Select, other: Other) -> Result<(), Refusal> {
        let Select {
            select_token,
            optimizer_hints,
            distinct,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        let at = place(select_token.0.span.start);
        refuse_clauses(
            at,
            &[
                (!optimizer_hints.is_empty(), Rule::Comment, "an optimizer hint"),
                (select_modifiers.is_some(), Rule::Modifier, "a modifier of SELECT"),
                (top.is_some(), Rule::Construct, "TOP"),
                (exclude.is_some(), Rule::Construct, "EXCLUDE"),
                (into.is_some(), Rule::Into, "SELECT … INTO"),
                (!lateral_views.is_empty(), Rule::Construct, "LATERAL VIEW"),
                (prewhere.is_some(), Rule::Construct, "PREWHERE"),
                (!connect_by.is_empty(), Rule::Construct, "CONNECT BY"),
                (!cluster_by.is_empty(), Rule::Construct, "CLUSTER BY"),
                (!distribute_by.is_empty(), Rule::Construct, "DISTRIBUTE BY"),
                (!sort_by.is_empty(), Rule::Construct, "SORT BY"),
                (!named_window.is_empty(), Rule::Window, "WINDOW"),
                (qualify.is_some(), Rule::Window, "QUALIFY"),
                (value_table_mode.is_some(), Rule::Construct, "AS VALUE or AS STRUCT"),
                (*flavor != SelectFlavor::Standard, Rule::Construct, "FROM before SELECT"),
            ],
        )?;
        match distinct {
            None | Some(Distinct::Distinct) => {}
            Some(Distinct::All | Distinct::On(_)) => {
                return Err(Refusal::new(Rule::Construct, at, "SELECT ALL or DISTINCT ON"));
            }
        }
        projection.iter().try_for_each(|item| self.item(item))?;
        self.from(from, at)?;
        let Some(condition) = selection else {
            return Err(Refusal::new(Rule::WhereMissing, at, "SELECT without WHERE"));
        };
        self.expression(condition)?;
        condition::check(condition, other)?;
        match group_by {
            GroupByExpr::Expressions(keys, modifiers) if modifiers.is_empty() => {
                keys.iter().try_for_each(|key| self.key(key))?;
            }
            GroupByExpr::Expressions(_, _) | GroupByExpr::All(_) => return Err(construct(group_by)),
        }
        having.iter().try_for_each(|condition| self.expression(condition))
    }

    fn item(&mut self, item: &SelectItem) -> Result<(), Refusal> {
        match item {
            SelectItem::UnnamedExpr(expr) => self.expression(expr),
            SelectItem::ExprWithAlias { expr, alias } => {
                self.expression(expr)?;
                self.name(alias)
            }
            SelectItem::Wildcard(options) => plain_wildcard(options),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), options) => {
                plain_wildcard(options)?;
                if table.0.len() > 1 {
                    return Err(Refusal::new(Rule::QualifiedName, place(table.span().start), format!("{table}.*")));
                }
                self.column(table)
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(_), _)
            | SelectItem::ExprWithAliases { expr: _, aliases: _ } => Err(construct(item)),
        }
    }

    fn from(&mut self, from: &[TableWithJoins], at: Option<At>) -> Result<(), Refusal> {
        let [TableWithJoins { relation, joins }] = from else {
            return Err(match from {
                [] => Refusal::new(Rule::FromMissing, at, "SELECT without FROM"),
                [..] => Refusal::new(Rule::Join, at, "tables joined by a comma"),
            });
        };
        self.table_factor(relation, false)?;
        joins.iter().try_for_each(|join| self.join(join))
    }

    fn join(&mut self, join: &Join) -> Result<(), Refusal> {
        let Join { relation, global, join_operator } = join;
        let at = place(relation.span().start);
        if *global {
            return Err(Refusal::new(Rule::Join, at, "GLOBAL JOIN"));
        }
        self.table_factor(relation, false)?;
        #[expect(clippy::wildcard_enum_match_arm, reason = "a join that is not named is refused")]
        let constraint = match join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint) => constraint,
            other => return Err(Refusal::new(Rule::Join, at, format!("the join {}", kind(other)))),
        };
        match constraint {
            JoinConstraint::On(condition) => self.expression(condition),
            JoinConstraint::Using(columns) => columns.iter().try_for_each(|column| self.column(column)),
            JoinConstraint::UsingAlias(_, _) | JoinConstraint::Natural | JoinConstraint::None => {
                Err(Refusal::new(Rule::Join, at, "a join without ON or USING"))
            }
        }
    }

    /// A table by its name, or a subquery with an alias.
    pub(super) fn table_factor(&mut self, factor: &TableFactor, written: bool) -> Result<(), Refusal> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "a source of rows that is not named is refused")]
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_directives,
                inheritance,
            } => {
                refuse_clauses(
                    place(name.span().start),
                    &[
                        (args.is_some(), Rule::Construct, "a table function"),
                        (!with_hints.is_empty(), Rule::IndexHint, "a table hint"),
                        (version.is_some(), Rule::Construct, "a table's version"),
                        (*with_ordinality, Rule::Construct, "WITH ORDINALITY"),
                        (!partitions.is_empty(), Rule::Partition, "PARTITION"),
                        (json_path.is_some(), Rule::Construct, "a JSON path behind a table"),
                        (sample.is_some(), Rule::Construct, "TABLESAMPLE"),
                        (!index_directives.is_empty(), Rule::IndexHint, "an index hint"),
                        (inheritance.is_some(), Rule::Construct, "ONLY or *"),
                    ],
                )?;
                self.table(name, written)?;
                self.alias(alias.as_ref())
            }
            TableFactor::Derived { lateral: false, subquery, alias, sample: None } => {
                self.inner_query(subquery)?;
                self.alias(alias.as_ref())
            }
            other => Err(construct(other)),
        }
    }

    /// The keys of ORDER BY.
    pub(super) fn order(&mut self, order: &[OrderByExpr]) -> Result<(), Refusal> {
        for key in order {
            let OrderByExpr { expr, options: OrderByOptions { sort, nulls_first }, with_fill } = key;
            let sort_known = matches!(sort, None | Some(OrderBySort::Asc | OrderBySort::Desc));
            if !sort_known || nulls_first.is_some() || with_fill.is_some() {
                return Err(construct(key));
            }
            self.key(expr)?;
        }
        Ok(())
    }

    /// A key of GROUP BY or ORDER BY: a parameter there would be a constant, and a number a column's position.
    fn key(&mut self, key: &Expr) -> Result<(), Refusal> {
        if let Expr::Value(ValueWithSpan { value, span }) = key {
            let found = format!("{value} as a key of GROUP BY or ORDER BY");
            let rule = if matches!(value, Value::Placeholder(_)) { Rule::Placeholder } else { Rule::Construct };
            return Err(Refusal::new(rule, place(span.start), found));
        }
        self.expression(key)
    }

    fn limit(&mut self, limit: &LimitClause) -> Result<(), Refusal> {
        match limit {
            LimitClause::LimitOffset { limit: Some(value), offset, limit_by } if limit_by.is_empty() => {
                self.limit_value(value)?;
                match offset {
                    None => Ok(()),
                    Some(Offset { value, rows: OffsetRows::None }) => self.limit_value(value),
                    Some(Offset { value, rows: OffsetRows::Row | OffsetRows::Rows }) => {
                        Err(Refusal::new(Rule::Limit, place(value.span().start), "OFFSET … ROWS"))
                    }
                }
            }
            LimitClause::LimitOffset { limit: _, offset: _, limit_by: _ } => Err(construct(limit)),
            LimitClause::OffsetCommaLimit { offset, limit } => {
                self.limit_value(offset)?;
                self.limit_value(limit)
            }
        }
    }

    /// A whole number or a parameter.
    pub(super) fn limit_value(&mut self, value: &Expr) -> Result<(), Refusal> {
        let whole = matches!(value, Expr::Value(ValueWithSpan { value: Value::Placeholder(_), span: _ }))
            || matches!(value, Expr::Value(ValueWithSpan { value: Value::Number(digits, false), span: _ })
                if digits.bytes().all(|digit| digit.is_ascii_digit()));
        if !whole {
            return Err(Refusal::new(Rule::Limit, place(value.span().start), format!("LIMIT {value}")));
        }
        self.expression(value)
    }

    /// A plain FOR UPDATE at the very end, on MySQL.
    fn lock(&mut self, locks: &[LockClause]) -> Result<bool, Refusal> {
        let Some(lock) = locks.first() else { return Ok(false) };
        let at = self.tokens.iter().rev().find(|token| token.is_word("FOR")).map(|token| token.at);
        if self.dialect == Dialect::Sqlite {
            return Err(Refusal::new(Rule::LockSqlite, at, lock));
        }
        let LockClause { lock_type, of, nonblock } = lock;
        let plain = match lock_type {
            LockType::Update => of.is_none() && nonblock.is_none() && locks.len() == 1,
            LockType::Share => false,
        };
        let [.., for_, update] = self.tokens else { return Ok(false) };
        if !plain || !for_.is_word("FOR") || !update.is_word("UPDATE") {
            return Err(Refusal::new(Rule::LockOption, at, lock));
        }
        Ok(true)
    }
}

fn plain_wildcard(options: &WildcardAdditionalOptions) -> Result<(), Refusal> {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    let plain = opt_ilike.is_none()
        && opt_exclude.is_none()
        && opt_except.is_none()
        && opt_replace.is_none()
        && opt_rename.is_none()
        && opt_alias.is_none();
    if plain { Ok(()) } else { Err(construct(options)) }
}
