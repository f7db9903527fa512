//! Expressions: the allow-list of their nodes, operators, functions and casts.

use sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DataType, DateTimeField, DuplicateTreatment, ExactNumberInfo,
    Expr, ExtractSyntax, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    InTarget, Interval, ObjectNamePart, Spanned, TimezoneInfo, UnaryOperator, Value, ValueWithSpan,
};

use super::Dialect;
use super::functions::{self, UNITS};
use super::lexer::Kind;
use super::parse::place;
use super::refusal::{At, Refusal, Rule};
use super::walk::{Walk, construct, kind};

impl Walk<'_> {
    /// A value that is stored: an expression, or DEFAULT on MySQL.
    pub(super) fn stored_value(&mut self, value: &Expr) -> Result<(), Refusal> {
        if let Expr::Identifier(Ident { value, quote_style: None, span }) = value
            && self.dialect == Dialect::MySql
            && value.eq_ignore_ascii_case("DEFAULT")
        {
            self.see(*span);
            return Ok(());
        }
        self.expression(value)
    }

    /// Any expression, one level down.
    pub(super) fn expression(&mut self, expr: &Expr) -> Result<(), Refusal> {
        self.deeper(place(expr.span().start), |walk| walk.node(expr))
    }

    fn expressions<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) -> Result<(), Refusal> {
        exprs.into_iter().try_for_each(|expr| self.expression(expr))
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a node that is not named here or in `special_form` is refused")]
    fn node(&mut self, expr: &Expr) -> Result<(), Refusal> {
        match expr {
            Expr::Identifier(name) => self.bare_name(name),
            Expr::CompoundIdentifier(parts) => self.column_path(parts),
            Expr::Value(value) => self.literal(value),
            Expr::Nested(inner)
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner) => self.expression(inner),
            Expr::UnaryOp { op, expr: inner } => {
                match op {
                    UnaryOperator::Plus | UnaryOperator::Minus | UnaryOperator::Not => {}
                    other => return Err(refuse_operator(other, expr)),
                }
                self.expression(inner)
            }
            Expr::BinaryOp { left, op, right } => {
                self.operator(op, expr)?;
                self.expressions([left.as_ref(), right.as_ref()])
            }
            Expr::Between { expr, negated: _, low, high } => {
                self.expressions([expr.as_ref(), low.as_ref(), high.as_ref()])
            }
            Expr::Like { negated: _, any: false, expr, pattern, escape_char } => {
                self.expressions([expr.as_ref(), pattern.as_ref()])?;
                self.expressions(escape_char.as_deref())
            }
            Expr::In { expr: needle, target, negated: _, global: false } => {
                self.expression(needle)?;
                match target {
                    InTarget::List(values) => self.expressions(values),
                    InTarget::Subquery(query) => self.inner_query(query),
                    InTarget::Unnest(_) | InTarget::Table { name: _, args: _ } => Err(construct(expr)),
                }
            }
            Expr::Exists { subquery, negated: _ } => self.inner_query(subquery),
            Expr::Subquery(query) => self.inner_query(query),
            Expr::Tuple(parts) => self.expressions(parts),
            Expr::Case { case_token: _, end_token: _, operand, conditions, else_result } => {
                self.expressions(operand.as_deref())?;
                for CaseWhen { condition, result } in conditions {
                    self.expressions([condition, result])?;
                }
                self.expressions(else_result.as_deref())
            }
            Expr::Function(function) => self.function(function),
            Expr::Prefixed { prefix: _, value: _ } | Expr::TypedString(_) => {
                Err(Refusal::new(Rule::StringLiteral, place(expr.span().start), format!("the literal {expr}")))
            }
            Expr::Collate { expr: _, collation } => {
                Err(Refusal::new(Rule::Collate, place(expr.span().start), format!("COLLATE {collation}")))
            }
            other => self.special_form(other),
        }
    }

    /// Functions that the grammar writes in a way of their own.
    fn special_form(&mut self, expr: &Expr) -> Result<(), Refusal> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "a node that is not named is refused")]
        match expr {
            Expr::Cast { kind: CastKind::Cast, expr: value, data_type, format: None } => {
                self.cast_type(data_type, expr)?;
                self.expression(value)
            }
            Expr::Extract { field, syntax: ExtractSyntax::From, expr: value } => {
                self.mysql_only(expr)?;
                check_unit(field, expr)?;
                self.expression(value)
            }
            Expr::Interval(interval) => {
                self.mysql_only(expr)?;
                let Interval { value, leading_field, leading_precision, last_field, fractional_seconds_precision } =
                    interval;
                match (leading_field, leading_precision, last_field, fractional_seconds_precision) {
                    (Some(unit), None, None, None) => check_unit(unit, expr)?,
                    _ => return Err(construct(expr)),
                }
                self.expression(value)
            }
            Expr::Ceil { expr: value, field } | Expr::Floor { expr: value, field } => match field {
                CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => self.expression(value),
                CeilFloorKind::DateTimeField(_) | CeilFloorKind::Scale(_) => Err(construct(expr)),
            },
            Expr::Position { expr: needle, r#in } => {
                self.mysql_only(expr)?;
                self.expressions([needle.as_ref(), r#in.as_ref()])
            }
            Expr::Substring { expr, substring_from, substring_for, special: _, shorthand: _ } => {
                self.expression(expr)?;
                self.expressions(substring_from.as_deref())?;
                self.expressions(substring_for.as_deref())
            }
            Expr::Trim { trim_where: _, trim_what, expr, trim_characters: None } => {
                self.expression(expr)?;
                self.expressions(trim_what.as_deref())
            }
            other => Err(construct(other)),
        }
    }

    /// A word alone: a column, or a function that is written without parentheses.
    fn bare_name(&mut self, name: &Ident) -> Result<(), Refusal> {
        let upper = name.value.to_ascii_uppercase();
        if name.quote_style.is_none() && functions::is_bare_function(&upper) {
            self.allowed_function(&upper, place(name.span.start))?;
            self.see(name.span);
            return Ok(());
        }
        self.name(name)
    }

    fn literal(&mut self, value: &ValueWithSpan) -> Result<(), Refusal> {
        let ValueWithSpan { value, span } = value;
        #[expect(clippy::wildcard_enum_match_arm, reason = "a kind of literal that is not named is refused")]
        match value {
            Value::Number(_, false) | Value::SingleQuotedString(_) | Value::Boolean(_) | Value::Null => {}
            Value::Placeholder(mark) if mark == "?" => {}
            other => {
                return Err(Refusal::new(Rule::StringLiteral, place(span.start), format!("the literal {other}")));
            }
        }
        self.see(*span);
        Ok(())
    }

    fn operator(&self, op: &BinaryOperator, expr: &Expr) -> Result<(), Refusal> {
        match (op, self.dialect) {
            (
                BinaryOperator::Plus
                | BinaryOperator::Minus
                | BinaryOperator::Multiply
                | BinaryOperator::Divide
                | BinaryOperator::Modulo
                | BinaryOperator::Gt
                | BinaryOperator::Lt
                | BinaryOperator::GtEq
                | BinaryOperator::LtEq
                | BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::And
                | BinaryOperator::Or
                | BinaryOperator::BitwiseAnd
                | BinaryOperator::BitwiseOr
                | BinaryOperator::PGBitwiseShiftLeft
                | BinaryOperator::PGBitwiseShiftRight
                | BinaryOperator::Arrow
                | BinaryOperator::LongArrow,
                Dialect::MySql | Dialect::Sqlite,
            )
            | (BinaryOperator::Spaceship | BinaryOperator::MyIntegerDivide, Dialect::MySql)
            | (BinaryOperator::StringConcat | BinaryOperator::Is | BinaryOperator::IsNot, Dialect::Sqlite) => Ok(()),
            (other, Dialect::MySql | Dialect::Sqlite) => Err(refuse_operator(other, expr)),
        }
    }

    /// A call `NAME(arguments)`, the name unqualified, unquoted and directly before the parenthesis.
    fn function(&mut self, function: &Function) -> Result<(), Refusal> {
        let Function { name, uses_odbc_syntax, parameters, args, within_group, filter, null_treatment, over } =
            function;
        let at = place(name.span().start);
        let refuse = |rule, found: String| Err(Refusal::new(rule, at, found));
        if over.is_some() {
            return refuse(Rule::Window, format!("{name} OVER"));
        }
        let plain = !*uses_odbc_syntax
            && *parameters == FunctionArguments::None
            && within_group.is_empty()
            && filter.is_none()
            && null_treatment.is_none();
        let ([ObjectNamePart::Identifier(ident @ Ident { value: _, quote_style: None, span: _ })], true) =
            (name.0.as_slice(), plain)
        else {
            return refuse(Rule::Function, format!("the function call {name}"));
        };
        let upper = ident.value.to_ascii_uppercase();
        let arguments = match args {
            FunctionArguments::None if functions::is_bare_function(&upper) => &[],
            FunctionArguments::List(FunctionArgumentList { duplicate_treatment, args, clauses }) => {
                let distinct = matches!(duplicate_treatment, Some(DuplicateTreatment::Distinct));
                let treated = duplicate_treatment.is_none() || distinct && is_aggregate(&upper);
                if !treated || !clauses.is_empty() || !self.is_called_directly(at) {
                    return refuse(Rule::Function, format!("the function call {function}"));
                }
                args.as_slice()
            }
            FunctionArguments::None | FunctionArguments::Subquery(_) => {
                return refuse(Rule::Function, format!("the function call {function}"));
            }
        };
        self.see(ident.span);
        if upper == "VALUES" && self.in_upsert {
            return self.inserted_value(arguments, at);
        }
        self.allowed_function(&upper, at)?;
        if upper == "LAST_INSERT_ID" {
            if !arguments.is_empty() {
                return refuse(Rule::LastInsertId, "LAST_INSERT_ID with an argument".to_owned());
            }
            self.last_insert_id = true;
        }
        self.arguments(&upper, arguments, at)
    }

    fn arguments(&mut self, upper: &str, arguments: &[FunctionArg], at: Option<At>) -> Result<(), Refusal> {
        let takes_unit = matches!(upper, "TIMESTAMPDIFF" | "TIMESTAMPADD");
        for (index, argument) in arguments.iter().enumerate() {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(unit))) if takes_unit && index == 0 => {
                    if unit.quote_style.is_some() || !UNITS.contains(&unit.value.to_ascii_uppercase().as_str()) {
                        return Err(Refusal::new(Rule::Function, at, format!("the unit {unit}")));
                    }
                    self.see(unit.span);
                }
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => self.expression(expr)?,
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if upper == "COUNT" && arguments.len() == 1 => {}
                FunctionArg::Unnamed(
                    FunctionArgExpr::Wildcard
                    | FunctionArgExpr::QualifiedWildcard(_)
                    | FunctionArgExpr::WildcardWithOptions(_),
                )
                | FunctionArg::Named { name: _, arg: _, operator: _ }
                | FunctionArg::ExprNamed { name: _, arg: _, operator: _ } => {
                    return Err(Refusal::new(Rule::Function, at, format!("the argument {argument} of {upper}")));
                }
            }
        }
        Ok(())
    }

    /// `VALUES(column)` of ON DUPLICATE KEY UPDATE.
    fn inserted_value(&mut self, arguments: &[FunctionArg], at: Option<At>) -> Result<(), Refusal> {
        match arguments {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(column)))] => self.name(column),
            [..] => Err(Refusal::new(Rule::Function, at, "VALUES of something else than one column")),
        }
    }

    fn allowed_function(&self, upper: &str, at: Option<At>) -> Result<(), Refusal> {
        if functions::is_allowed(self.dialect, upper) {
            return Ok(());
        }
        let rule =
            if matches!(upper, "LAST_INSERT_ID" | "LAST_INSERT_ROWID") { Rule::LastInsertId } else { Rule::Function };
        Err(Refusal::new(rule, at, format!("the function {upper} on {}", self.dialect)))
    }

    /// Without a space before the parenthesis; with one, sql_mode decides whether a stored function is meant.
    fn is_called_directly(&self, at: Option<At>) -> bool {
        let index = self.tokens.iter().position(|token| Some(token.at) == at);
        let pair = index.and_then(|index| self.tokens.get(index..index + 2));
        matches!(pair, Some([name, open])
            if name.kind == Kind::Word && open.kind == Kind::Symbol && open.text == "(" && name.end == open.start)
    }

    fn cast_type(&self, data_type: &DataType, expr: &Expr) -> Result<(), Refusal> {
        let sized = |info: &ExactNumberInfo| match info {
            ExactNumberInfo::None | ExactNumberInfo::Precision(_) => true,
            ExactNumberInfo::PrecisionAndScale(_, scale) => *scale >= 0,
        };
        let allowed = match (data_type, self.dialect) {
            (DataType::Signed | DataType::SignedInteger, Dialect::MySql)
            | (DataType::Unsigned | DataType::UnsignedInteger, Dialect::MySql)
            | (DataType::Char(_) | DataType::JSON | DataType::Date, Dialect::MySql)
            | (DataType::Datetime(_) | DataType::Time(_, TimezoneInfo::None), Dialect::MySql)
            | (DataType::Float(ExactNumberInfo::None) | DataType::Double(ExactNumberInfo::None), Dialect::MySql)
            | (DataType::Integer(None) | DataType::Text | DataType::Real, Dialect::Sqlite)
            | (DataType::Numeric(ExactNumberInfo::None) | DataType::Blob(None), Dialect::Sqlite) => true,
            (DataType::Decimal(info), Dialect::MySql) => sized(info),
            (_, Dialect::MySql | Dialect::Sqlite) => false,
        };
        if allowed {
            return Ok(());
        }
        let found = format!("CAST to {data_type} on {}", self.dialect);
        Err(Refusal::new(Rule::CastType, place(expr.span().start), found))
    }

    fn mysql_only(&self, expr: &Expr) -> Result<(), Refusal> {
        match self.dialect {
            Dialect::MySql => Ok(()),
            Dialect::Sqlite => Err(construct(expr)),
        }
    }
}

fn is_aggregate(upper: &str) -> bool {
    matches!(upper, "COUNT" | "SUM" | "MIN" | "MAX" | "AVG" | "TOTAL")
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a unit that is not named is refused")]
fn check_unit(unit: &DateTimeField, expr: &Expr) -> Result<(), Refusal> {
    match unit {
        DateTimeField::Year
        | DateTimeField::Quarter
        | DateTimeField::Month
        | DateTimeField::Week(None)
        | DateTimeField::Day
        | DateTimeField::Hour
        | DateTimeField::Minute
        | DateTimeField::Second
        | DateTimeField::Microsecond => Ok(()),
        other => Err(Refusal::new(Rule::Construct, place(expr.span().start), format!("the unit {other}"))),
    }
}

fn refuse_operator(op: &(impl std::fmt::Display + std::fmt::Debug), expr: &Expr) -> Refusal {
    Refusal::new(Rule::Operator, place(expr.span().start), format!("the operator {op} ({})", kind(op)))
}
