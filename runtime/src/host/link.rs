//! A lane's connection to its tenant's database: opened when a batch needs it, closed when it idles.

use std::{sync::Arc, time::Duration};

use super::{
    connections::{Connections, Place},
    lane::{LaneContext, Patience},
    run::Work,
    turns::LaneTurn,
};
use crate::store::Lane;

/// A lane's connection, if it has one now.
pub struct Link {
    open: Option<Open>,
    /// Where a place for it is to be had; `None`: it needs none, and stays open.
    connections: Option<Arc<Connections>>,
    /// The batch that it is opened for has its turn, until it is settled or has to wait for the database.
    turn: Option<LaneTurn>,
}

/// In this order, so that a dropped one is closed before its place goes to another lane.
struct Open {
    connection: Box<dyn Lane>,
    place: Option<Place>,
}

impl Link {
    /// No connection yet.
    #[must_use]
    pub fn new(connections: Option<Arc<Connections>>) -> Self {
        Self { open: None, connections, turn: None }
    }

    /// The connection, opened if it is not, however long the database is away: meanwhile other lanes may have its place and
    /// its turn. `None`: the host stops.
    pub async fn open(&mut self, lane: &LaneContext) -> Option<&mut dyn Lane> {
        if self.open.is_none() {
            let mut patience = Patience::new(lane);
            self.open = loop {
                let place = match &self.connections {
                    Some(connections) => Some(connections.place().await?),
                    None => None,
                };
                match lane.tenant.store.lane().await {
                    Ok(connection) => break Some(Open { connection, place }),
                    Err(error) => {
                        drop(place);
                        self.turn = None;
                        patience.wait(&error).await?;
                    }
                }
            };
            patience.over();
        }
        let open = self.open.as_mut()?;
        Some(open.connection.as_mut())
    }

    /// The connection, if it is open now.
    pub fn connection(&mut self) -> Option<&mut dyn Lane> {
        let open = self.open.as_mut()?;
        Some(open.connection.as_mut())
    }

    /// The connection is broken, or its database away.
    pub fn lost(&mut self) {
        self.open = None;
        self.turn = None;
    }

    /// Waits for the next batch, and with one for the lane's turn and a place for its connection: what comes meanwhile
    /// joins it. When the wait is long, or another lane waits for its place, the connection is closed meanwhile. `None`:
    /// the queue is closed.
    pub async fn take(&mut self, lane: &LaneContext) -> Option<Vec<Work>> {
        self.turn = None;
        let limits = lane.batch_limits();
        if let Some(Open { place: Some(place), .. }) = &self.open {
            let idle_after = lane.tenant.store.idle_after().unwrap_or(Duration::MAX);
            tokio::select! {
                biased;
                turn = lane.gather(limits) => self.turn = turn,
                () = place.wanted() => self.close().await,
                () = tokio::time::sleep(idle_after) => self.close().await,
            }
        }
        loop {
            if self.open.is_none() || self.connections.is_none() {
                self.turn = lane.gather(limits).await;
                // If nothing is ready the queue is closed, and a connection would be opened in vain.
                if lane.queue.is_ready() {
                    self.open(lane).await;
                }
            }
            let Some(Open { place: Some(place), .. }) = &self.open else { return lane.queue.take_ready(limits).await };
            tokio::select! {
                biased;
                batch = lane.queue.take_ready(limits) => return batch,
                // It can be that nothing is ready any more.
                () = place.wanted() => self.close().await,
            }
        }
    }

    /// Between two batches: gives up the connection if another lane waits for its place.
    pub async fn make_way(&mut self) {
        if self.open.as_ref().is_some_and(|open| open.place.as_ref().is_some_and(Place::is_wanted)) {
            self.close().await;
        }
    }

    async fn close(&mut self) {
        if let Some(Open { connection, place }) = self.open.take() {
            connection.close().await;
            drop(place);
        }
    }
}

impl From<Box<dyn Lane>> for Link {
    /// One that is open already and needs no place.
    fn from(connection: Box<dyn Lane>) -> Self {
        Self { open: Some(Open { connection, place: None }), connections: None, turn: None }
    }
}
