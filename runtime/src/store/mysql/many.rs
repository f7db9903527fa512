//! Statements over many rows at once, in few texts.
//!
//! A text exists for 1, 2, 4, … 256 rows, whatever is to be written: free row counts would thrash the cache of prepared
//! statements. What is inserted is cut into such counts; a list that is looked for is filled up with its last row. A
//! statement holds at most half of what one packet may.

use std::sync::{Arc, OnceLock};

use sqlx::{AssertSqlSafe, mysql::MySqlRow};

use super::{
    args::Args,
    errors::MysqlError,
    server::Flavour,
    session::{Done, Session},
};

/// Rows of one statement: with 24 values a row far from the 65,535 that a statement may have.
const ROWS_MAX: usize = 256;
/// Texts of a statement: 1 = 2^0 to 256 = 2^8 rows.
const TEXTS: usize = 9;
/// What a packet needs beside the rows' own bytes, a value and all of a statement.
const PER_ROW: usize = 256;
const PER_STATEMENT: usize = 1_024;

/// A statement whose middle is repeated.
pub(super) struct Many {
    head: &'static str,
    row: &'static str,
    between: &'static str,
    tail: &'static str,
    /// By flavour and power of two.
    texts: [[OnceLock<Arc<str>>; TEXTS]; 2],
}

impl Many {
    /// `INSERT … VALUES` rows. In the tail, `{column}` is the value that would have been inserted.
    pub(super) const fn insert(head: &'static str, row: &'static str, tail: &'static str) -> Self {
        Self::new(head, row, ", ", tail)
    }

    /// Rows by key: `WHERE` one key `OR` another. Each comparison stands alone, so that both servers step into the
    /// index once a key and touch, and lock, no other row (checked by the suite with EXPLAIN).
    pub(super) const fn keys(head: &'static str, key: &'static str, tail: &'static str) -> Self {
        Self::new(head, key, " OR ", tail)
    }

    /// The same for a key of one column: `IN (` one key, another `)`. Where it may be, it is: comparisons beside each other
    /// cost a server three times as much.
    pub(super) const fn list(head: &'static str, key: &'static str, tail: &'static str) -> Self {
        Self::new(head, key, ", ", tail)
    }

    /// Any repeated middle.
    pub(super) const fn new(head: &'static str, row: &'static str, between: &'static str, tail: &'static str) -> Self {
        Self { head, row, between, tail, texts: [const { [const { OnceLock::new() }; TEXTS] }; 2] }
    }

    /// The text for these rows, with their values in it. The statement's own parts have no `?` but in the row.
    pub(super) fn with_values<T>(&self, flavour: Flavour, rows: &[T], bind: impl Fn(&mut Args, &T)) -> String {
        let mut args = Args::text(self.head);
        let mut before = "";
        for row in rows {
            args.row(before, self.row);
            bind(&mut args, row);
            before = self.between;
        }
        args.written(&self.tail(flavour))
    }

    /// The text for 2^`power` rows.
    pub(super) fn text(&self, flavour: Flavour, power: usize) -> Arc<str> {
        let written = || self.written(flavour, 1 << power);
        match self.texts.get(flavour as usize).and_then(|texts| texts.get(power)) {
            Some(text) => text.get_or_init(written).clone(),
            None => written(),
        }
    }

    fn written(&self, flavour: Flavour, rows: usize) -> Arc<str> {
        let middle = vec![self.row; rows].join(self.between);
        format!("{}{middle}{}", self.head, self.tail(flavour)).into()
    }

    fn tail(&self, flavour: Flavour) -> String {
        let mut tail = String::with_capacity(self.tail.len() + 16);
        // MariaDB has no row alias; of MySQL's VALUES() the manual says that it will go (8.4 manual, 15.2.7.2).
        if self.tail.contains('{') && flavour == Flavour::Mysql {
            tail.push_str(" AS new");
        }
        let mut rest = self.tail;
        while let Some((before, after)) = rest.split_once('{') {
            let (column, after) = after.split_once('}').unwrap_or((after, ""));
            tail.push_str(before);
            match flavour {
                Flavour::Mysql => tail.extend(["new.", column]),
                Flavour::Mariadb => tail.extend(["VALUES(", column, ")"]),
            }
            rest = after;
        }
        tail.push_str(rest);
        tail
    }
}

impl Session {
    /// Runs a statement over all rows, as often as needed; the answer sums what was affected, and has the greatest of
    /// the last inserted ids. `bytes` is about what a row's values take, `bind` adds them.
    pub(super) async fn write_many<T: Sync>(
        &mut self,
        what: &'static str,
        many: &Many,
        rows: &[T],
        bytes: fn(&T) -> usize,
        bind: impl Fn(&mut Args, &T) + Sync,
    ) -> Result<Done, MysqlError> {
        let mut all = Done { affected: 0, last_insert_id: 0 };
        for chunk in cut(what, rows, self.facts().packet_max, bytes)? {
            let done = self.write_chunk(what, many, chunk, &bind).await?;
            all.affected += done.affected;
            all.last_insert_id = all.last_insert_id.max(done.last_insert_id);
        }
        Ok(all)
    }

    /// The same with the next trip, values in the text; what is too large for that is done at once.
    pub(super) async fn write_later<T: Sync>(
        &mut self,
        what: &'static str,
        many: &Many,
        rows: &[T],
        bytes: fn(&T) -> usize,
        bind: impl Fn(&mut Args, &T) + Sync,
    ) -> Result<(), MysqlError> {
        for chunk in cut_freely(what, rows, self.facts().packet_max, bytes)? {
            let text = many.with_values(self.flavour(), chunk, &bind);
            if self.has_room_for(&text) {
                self.later(what, &text).await?;
            } else {
                self.write_many(what, many, chunk, bytes, &bind).await?;
            }
        }
        Ok(())
    }

    /// Runs a statement over rows, values in the text, with all that waits for a trip; the answer is its own.
    pub(super) async fn write_text<T: Sync>(
        &mut self,
        what: &'static str,
        many: &Many,
        rows: &[T],
        bytes: fn(&T) -> usize,
        bind: impl Fn(&mut Args, &T) + Sync,
    ) -> Result<Done, MysqlError> {
        let text = many.with_values(self.flavour(), rows, &bind);
        if !self.has_room_for(&text) {
            return self.write_many(what, many, rows, bytes, &bind).await;
        }
        self.now(what, &text).await
    }

    /// Runs a statement over rows that [`cut`] has given.
    pub(super) async fn write_chunk<T: Sync>(
        &mut self,
        what: &'static str,
        many: &Many,
        chunk: &[T],
        bind: impl Fn(&mut Args, &T) + Sync,
    ) -> Result<Done, MysqlError> {
        let mut args = Args::default();
        chunk.iter().for_each(|row| bind(&mut args, row));
        let text = many.text(self.flavour(), chunk.len().trailing_zeros() as usize);
        self.execute(what, AssertSqlSafe(text), args).await
    }

    /// Runs a statement over rows by key, with values before the keys; the answer sums what was affected. Filled up
    /// with the last key, which is found once all the same.
    pub(super) async fn write_keys<T: Sync>(
        &mut self,
        what: &'static str,
        many: &Many,
        keys: &[T],
        first: impl Fn(&mut Args) + Sync,
        bind: impl Fn(&mut Args, &T) + Sync,
    ) -> Result<u64, MysqlError> {
        let mut affected = 0;
        for chunk in keys.chunks(ROWS_MAX) {
            let (text, args) = listed(many, self.flavour(), chunk, &first, &bind);
            affected += self.execute(what, AssertSqlSafe(text), args).await?.affected;
        }
        Ok(affected)
    }

    /// Reads rows by key.
    pub(super) async fn read_keys<T: Sync>(
        &mut self,
        what: &'static str,
        many: &Many,
        keys: &[T],
        bind: impl Fn(&mut Args, &T) + Sync,
    ) -> Result<Vec<MySqlRow>, MysqlError> {
        let mut rows = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(ROWS_MAX) {
            let (text, args) = listed(many, self.flavour(), chunk, &|_| (), &bind);
            rows.extend(self.rows(what, AssertSqlSafe(text), args).await?);
        }
        Ok(rows)
    }
}

fn listed<T>(
    many: &Many,
    flavour: Flavour,
    chunk: &[T],
    first: &impl Fn(&mut Args),
    bind: &impl Fn(&mut Args, &T),
) -> (Arc<str>, Args) {
    let power = chunk.len().next_power_of_two().trailing_zeros() as usize;
    let mut args = Args::default();
    first(&mut args);
    let filled = chunk.iter().chain(chunk.last().into_iter().cycle());
    filled.take(1 << power).for_each(|key| bind(&mut args, key));
    (many.text(flavour, power), args)
}

/// Cuts rows into powers of two, each of which half a packet holds; a row alone may have a whole one.
pub(super) fn cut<'r, T>(
    what: &'static str,
    rows: &'r [T],
    packet_max: usize,
    bytes: fn(&T) -> usize,
) -> Result<Vec<&'r [T]>, MysqlError> {
    cut_into(what, rows, packet_max, bytes, |fitting| 1 << fitting.min(ROWS_MAX).ilog2())
}

/// The same, as many rows at once as half a packet holds: for a text that does not depend on their number.
pub(super) fn cut_freely<'r, T>(
    what: &'static str,
    rows: &'r [T],
    packet_max: usize,
    bytes: fn(&T) -> usize,
) -> Result<Vec<&'r [T]>, MysqlError> {
    cut_into(what, rows, packet_max, bytes, |fitting| fitting)
}

/// `count` says how many of those that fit are taken.
fn cut_into<'r, T>(
    what: &'static str,
    rows: &'r [T],
    packet_max: usize,
    bytes: fn(&T) -> usize,
    count: fn(usize) -> usize,
) -> Result<Vec<&'r [T]>, MysqlError> {
    let room = packet_max / 2;
    let (mut chunks, mut rest) = (Vec::new(), rows);
    while let [one, ..] = rest {
        let (mut fitting, mut used) = (0usize, PER_STATEMENT);
        for row in rest {
            used = used.saturating_add(bytes(row)).saturating_add(PER_ROW);
            if used > room {
                break;
            }
            fitting += 1;
        }
        if fitting == 0 {
            let bytes = bytes(one).saturating_add(PER_ROW + PER_STATEMENT);
            if bytes > packet_max {
                return Err(MysqlError::TooLarge { what, bytes, max: packet_max });
            }
            fitting = 1;
        }
        let (chunk, after) = rest.split_at(count(fitting));
        chunks.push(chunk);
        rest = after;
    }
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(rows: &[usize], packet_max: usize) -> Vec<usize> {
        cut("test", rows, packet_max, |bytes| *bytes).unwrap().iter().map(|chunk| chunk.len()).collect()
    }

    #[test]
    fn any_number_of_rows_is_cut_into_powers_of_two() {
        let packet = 64 << 20;
        for (rows, expected) in [
            (0, vec![]),
            (1, vec![1]),
            (3, vec![2, 1]),
            (100, vec![64, 32, 4]),
            (255, vec![128, 64, 32, 16, 8, 4, 2, 1]),
            (256, vec![256]),
            (600, vec![256, 256, 64, 16, 8]),
        ] {
            assert_eq!(lengths(&vec![10; rows], packet), expected, "{rows}");
        }
    }

    #[test]
    fn rows_of_a_text_for_any_number_of_them_are_cut_only_where_a_packet_is_full() {
        let lengths = |rows: &[usize]| {
            cut_freely("test", rows, 1 << 20, |bytes| *bytes)
                .unwrap()
                .iter()
                .map(|chunk| chunk.len())
                .collect::<Vec<_>>()
        };
        assert_eq!(lengths(&[10; 700]), [700]);
        assert_eq!(lengths(&[200_000; 5]), [2, 2, 1]);
    }

    #[test]
    fn a_statement_holds_half_a_packet_and_one_row_a_whole_one() {
        let packet = 1 << 20;
        // 524,288 bytes of room: two rows of 200,000 fit, three do not.
        assert_eq!(lengths(&[200_000; 5], packet), [2, 2, 1]);
        assert_eq!(lengths(&[1_000_000, 10, 10], packet), [1, 2]);
        assert_eq!(lengths(&[10, 1_000_000, 10], packet), [1, 1, 1]);
        let error = cut("body", &[packet], packet, |bytes| *bytes).unwrap_err();
        assert_eq!(error, MysqlError::TooLarge { what: "body", bytes: packet + PER_ROW + PER_STATEMENT, max: packet });
    }

    #[test]
    fn the_value_that_would_have_been_inserted_is_named_as_the_server_wants_it() {
        let many = Many::insert("INSERT INTO t (a, n) VALUES ", "(?, ?)", " ON DUPLICATE KEY UPDATE n = t.n + {n}");
        assert_eq!(
            &*many.text(Flavour::Mysql, 1),
            "INSERT INTO t (a, n) VALUES (?, ?), (?, ?) AS new ON DUPLICATE KEY UPDATE n = t.n + new.n"
        );
        assert_eq!(
            &*many.text(Flavour::Mariadb, 0),
            "INSERT INTO t (a, n) VALUES (?, ?) ON DUPLICATE KEY UPDATE n = t.n + VALUES(n)"
        );
        let keys = Many::keys("SELECT 1 FROM t WHERE ", "a = ?", " FOR UPDATE");
        assert_eq!(&*keys.text(Flavour::Mysql, 1), "SELECT 1 FROM t WHERE a = ? OR a = ? FOR UPDATE");
    }
}
