//! What a planted fault does where that is more than a line: nothing here happens unless a test has planted it
//! (`crate::planted`).

use std::collections::HashMap;

use oncebox_core::failure::{Class, Failure};

use super::{
    lane::LaneContext,
    run::{Item, Work},
};
use crate::{
    source::Receipt,
    store::{InboxKey, InboxRow},
};

/// Tells the broker "done" of what no database knows.
pub(super) async fn settle_undecided(lane: &LaneContext, items: &[Item]) {
    let receipts = items.iter().filter_map(|item| item.delivery.origin.settle.as_ref()).map(|settle| settle.receipt);
    let receipts: Vec<Receipt> = receipts.collect();
    for source in lane.tenant.sources.iter() {
        source.settle(&receipts).await;
    }
}

/// Takes another fingerprint that a look-up has seen for a conflict, whatever becomes of the row meanwhile.
pub(super) fn conclude_conflicts(lane: &LaneContext, batch: &mut [Work], rows: &HashMap<InboxKey, InboxRow>) {
    let limits = lane.tenant.identify_limits();
    for Work { delivery, .. } in batch {
        let row = delivery.key().and_then(|key| rows.get(&key));
        if row.is_some_and(|row| !delivery.equals(row, &limits)) {
            let failure = Failure::new(Class::Conflict, "conflict", "the look-up has seen another fingerprint");
            delivery.unrun = Some(failure);
        }
    }
}
