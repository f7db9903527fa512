//! A connection that notes what is asked of it, and whose next COMMIT may fail, before or after the database has done it.

use std::sync::Arc;

use async_trait::async_trait;
use oncebox::store::{
    Halted, HandlerId, HeldId, HeldMark, InboxKey, InboxMark, InboxRow, Lane, LocalId, NewAttempt, NewHeld, NewInbox,
    NewLocal, OrderKey, OrderRow, OutboxRow, QueryAnswer, Savepoint, Staged, StartEnd, StatementError, StoreError,
    Suspect, UnitOfWork,
};
use oncebox_core::{
    blame::Start,
    ids::{BootId, LeaseToken},
    life::Verdict,
    value::Value,
};

/// How the next COMMIT ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commit {
    /// The database never got it.
    NotDone,
    /// It is done, its answer is lost.
    AnswerLost,
    /// It is done.
    Done,
}

pub(crate) struct FaultyLane {
    pub(crate) inner: Box<dyn Lane>,
    pub(crate) commit: Commit,
    /// The names of the calls of its units, in order.
    pub(crate) calls: Vec<&'static str>,
}

impl FaultyLane {
    pub(crate) fn new(inner: Box<dyn Lane>, commit: Commit) -> Self {
        Self { inner, commit, calls: Vec::new() }
    }

    /// How often its units were asked for something.
    pub(crate) fn count(&self, call: &str) -> usize {
        self.calls.iter().filter(|own| **own == call).count()
    }
}

#[async_trait]
impl Lane for FaultyLane {
    async fn inbox_look_up(&mut self, keys: &[InboxKey]) -> Result<Vec<InboxRow>, StoreError> {
        self.inner.inbox_look_up(keys).await
    }

    async fn start_alone(&mut self, suspect: &Suspect, start: Start) -> Result<bool, StoreError> {
        self.inner.start_alone(suspect, start).await
    }

    async fn begin(&mut self) -> Result<Box<dyn UnitOfWork + '_>, StoreError> {
        let Self { inner, commit, calls } = self;
        Ok(Box::new(FaultyUnit { inner: inner.begin().await?, commit: *commit, calls }))
    }
}

struct FaultyUnit<'a> {
    inner: Box<dyn UnitOfWork + 'a>,
    commit: Commit,
    calls: &'a mut Vec<&'static str>,
}

macro_rules! passed_on {
    ($($verb:ident($($name:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl UnitOfWork for FaultyUnit<'_> {
            $(async fn $verb(&mut self, $($name: $type),*) -> $answer {
                self.calls.push(stringify!($verb));
                self.inner.$verb($($name),*).await
            })*

            async fn staged_writes(&mut self, writes: &[Staged<'_>]) -> Result<Vec<u64>, Halted> {
                self.calls.extend(writes.iter().map(|write| match write {
                    Staged::One(..) => "staged_write",
                    Staged::InsertMany(..) => "staged_insert_many",
                    Staged::UpdateMany(..) => "staged_update_many",
                }));
                self.inner.staged_writes(writes).await
            }

            async fn commit(self: Box<Self>) -> Result<(), StoreError> {
                match self.commit {
                    Commit::Done => return self.inner.commit().await,
                    Commit::NotDone => self.inner.rollback().await?,
                    Commit::AnswerLost => self.inner.commit().await?,
                }
                Err(StoreError::Away { message: "the answer to COMMIT is lost".into() })
            }

            async fn give_up(self: Box<Self>) -> Result<(), StoreError> {
                self.inner.give_up().await
            }

            async fn rollback(self: Box<Self>) -> Result<(), StoreError> {
                self.inner.rollback().await
            }
        }
    };
}

passed_on! {
    now_us() -> Result<i64, StoreError>;
    inbox_insert(token: LeaseToken, rows: &[NewInbox]) -> Result<Vec<InboxRow>, StoreError>;
    inbox_lock(keys: &[InboxKey]) -> Result<Vec<Option<InboxRow>>, StoreError>;
    inbox_delete(token: LeaseToken, keys: &[InboxKey]) -> Result<(), StoreError>;
    inbox_mark(marks: &[InboxMark]) -> Result<(), StoreError>;
    order_lock(keys: &[OrderKey]) -> Result<Vec<OrderRow>, StoreError>;
    order_mark(rows: &[OrderRow]) -> Result<(), StoreError>;
    order_due(keys: &[OrderKey]) -> Result<(), StoreError>;
    held_lock(claims: &[(HeldId, LeaseToken)]) -> Result<Vec<bool>, StoreError>;
    savepoint(name: Savepoint) -> Result<(), StoreError>;
    rollback_to(name: Savepoint) -> Result<(), StoreError>;
    release(name: Savepoint) -> Result<(), StoreError>;
    last_insert_id_reset() -> Result<(), StoreError>;
    query(sql: &Arc<str>, params: &[Value], rows_max: u32) -> Result<QueryAnswer, StatementError>;
    outbox_insert(rows: &[OutboxRow]) -> Result<(), StoreError>;
    local_insert(rows: &[NewLocal]) -> Result<(), StoreError>;
    local_settle(messages: &[(LocalId, LeaseToken)]) -> Result<Vec<LocalId>, StoreError>;
    start_end(ends: &[StartEnd]) -> Result<(), StoreError>;
    held_insert(rows: &[NewHeld]) -> Result<Vec<HeldId>, StoreError>;
    held_mark(marks: &[HeldMark]) -> Result<(), StoreError>;
    attempt_insert(rows: &[NewAttempt]) -> Result<(), StoreError>;
    tally_add(boot: BootId, lane: u16, counts: &[(HandlerId, Verdict, u64)]) -> Result<(), StoreError>;
}
