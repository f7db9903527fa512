//! How many connections all lanes of the host may have at servers, and whose turn it is when there are too few.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The host's `limits.connections_max`. Lanes get a place in the order in which they asked, so that none waits for ever;
/// one that has a place gives it up between two batches when another waits.
pub struct Connections {
    places: Arc<Semaphore>,
    /// Lanes that wait, less the places that were given up for them.
    wanted: watch::Sender<usize>,
}

impl Connections {
    /// As many as the configuration says.
    #[must_use]
    pub fn new(max: u32) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(usize::try_from(max).unwrap_or(Semaphore::MAX_PERMITS)));
        Arc::new(Self { places, wanted: watch::Sender::new(0) })
    }

    /// Waits for a place. `None`: never, for nobody closes this.
    pub async fn place(self: &Arc<Self>) -> Option<Place> {
        let permit = match self.places.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                self.wanted.send_modify(|wanted| *wanted += 1);
                self.places.clone().acquire_owned().await.ok()?
            }
        };
        Some(Place { connections: self.clone(), _permit: permit })
    }
}

/// Room for one connection; given up when it is dropped.
pub struct Place {
    connections: Arc<Connections>,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    /// Whether a lane waits for which nobody has given up a place yet.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        *self.connections.wanted.borrow() > 0
    }

    /// Waits until that is so.
    pub async fn wanted(&self) {
        // The sender is ours, so this ends only when it is true.
        let _ = self.connections.wanted.subscribe().wait_for(|wanted| *wanted > 0).await;
    }
}

impl Drop for Place {
    /// Before the permit itself goes: no second lane shall give up its place for the same one that waits.
    fn drop(&mut self) {
        self.connections.wanted.send_if_modified(|wanted| {
            let was = *wanted;
            *wanted = was.saturating_sub(1);
            was > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn places_go_to_those_who_wait_in_their_order_and_each_is_given_up_once() {
        let connections = Connections::new(2);
        let (one, two) = (connections.place().await.unwrap(), connections.place().await.unwrap());
        assert!(!one.is_wanted() && two.wanted().now_or_never().is_none());
        let (mut third, mut fourth) = (Box::pin(connections.place()), Box::pin(connections.place()));
        assert!(third.as_mut().now_or_never().is_none());
        assert!(one.is_wanted() && two.wanted().now_or_never().is_some());
        drop(one);
        // It was given up for the third: the second need not go as well, although the third has not come to take it.
        assert!(!two.is_wanted());
        assert!(fourth.as_mut().now_or_never().is_none(), "not before the third");
        assert!(two.is_wanted());
        let third = third.await.unwrap();
        drop(two);
        assert!(!third.is_wanted());
        fourth.await.unwrap();
    }

    #[tokio::test]
    async fn a_place_that_nobody_waits_for_is_free_for_the_next() {
        let connections = Connections::new(1);
        drop(connections.place().await);
        let place = connections.place().now_or_never().unwrap().unwrap();
        assert!(!place.is_wanted());
    }
}
