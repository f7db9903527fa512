//! The order rows that a unit of work has locked, and what its events change in them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use oncebox_core::order::{Ahead, Arrival, Passed, ahead};

use super::delivery::Delivery;
use crate::store::{OrderKey, OrderRow, Place, StoreError, UnitOfWork};

/// Order rows of the unit, by key.
#[derive(Default)]
pub(super) struct OrderRows(BTreeMap<OrderKey, OrderRow>);

impl OrderRows {
    /// Locks the rows of these deliveries' ordering keys, sorted.
    pub(super) async fn lock(
        unit: &mut dyn UnitOfWork,
        deliveries: impl Iterator<Item = &Delivery>,
    ) -> Result<Self, StoreError> {
        let keys: BTreeSet<OrderKey> = deliveries.filter_map(Delivery::order_key).collect();
        if keys.is_empty() {
            return Ok(Self::default());
        }
        let keys: Vec<OrderKey> = keys.into_iter().collect();
        let rows = unit.order_lock(&keys).await?;
        Ok(Self(rows.into_iter().map(|row| (row.key.clone(), row)).collect()))
    }
}

/// One pass over a unit's events in their order: what became of the earlier ones of each ordering key.
#[derive(Default)]
pub(super) struct Pass(HashMap<OrderKey, Passed>);

impl Pass {
    /// What a delivery has to wait for.
    pub(super) fn ahead(&self, rows: &OrderRows, delivery: &Delivery) -> Ahead {
        let Some(key) = delivery.order_key() else { return Ahead::Nobody };
        let arrival = delivery.claim.map_or(Arrival::New, |claim| Arrival::Claimed(claim.place));
        let head = rows.0.get(&key).and_then(|row| row.head);
        ahead(arrival, head, self.0.get(&key).copied())
    }

    /// Notes what became of it.
    pub(super) fn note(&mut self, delivery: &Delivery, passed: Passed) {
        if let Some(key) = delivery.order_key() {
            let worst = self.0.entry(key).or_insert(passed);
            *worst = passed.max(*worst);
        }
    }
}

/// What is to be written of order rows.
#[derive(Default)]
pub(super) struct OrderMarks {
    rows: BTreeMap<OrderKey, OrderRow>,
    changed: BTreeSet<OrderKey>,
    due: BTreeSet<OrderKey>,
}

impl OrderMarks {
    /// From the rows as they were locked.
    pub(super) fn of(rows: &OrderRows) -> Self {
        Self { rows: rows.0.clone(), ..Self::default() }
    }

    /// Another event of the key is held: the place is behind all others.
    pub(super) fn hold(&mut self, delivery: &Delivery) -> Option<Place> {
        let key = delivery.order_key()?;
        let row = self.rows.get_mut(&key)?;
        let place = Place { ordering_key: key.1.clone(), place: row.next_place };
        row.held = row.held.saturating_add(1);
        row.next_place = row.next_place.saturating_add(1);
        // Whoever stands first goes on, should nobody have told it to.
        self.due.insert(key.clone());
        self.changed.insert(key);
        Some(place)
    }

    /// A claimed event is over: whoever is next may go on.
    pub(super) fn resolve(&mut self, delivery: &Delivery) {
        let Some(key) = delivery.order_key() else { return };
        let Some(row) = self.rows.get_mut(&key) else { return };
        row.held = row.held.saturating_sub(1);
        self.due.insert(key.clone());
        self.changed.insert(key);
    }

    /// Whether somebody may go on after this unit.
    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Writes it, after the held rows: those tell who is next.
    pub(super) async fn write(&self, unit: &mut dyn UnitOfWork) -> Result<(), StoreError> {
        let changed: Vec<OrderRow> = self.changed.iter().filter_map(|key| self.rows.get(key)).cloned().collect();
        if !changed.is_empty() {
            unit.order_mark(&changed).await?;
        }
        let due: Vec<OrderKey> = self.due.iter().cloned().collect();
        if due.is_empty() { Ok(()) } else { unit.order_due(&due).await }
    }
}
