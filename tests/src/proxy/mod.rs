//! Stands between a host and a server, and does to their connections what a network does on a bad day, or at the worst
//! moment: when a certain message of the protocol is on its way.
//!
//! A message is found wherever its bytes are split. Only plain connections are read, without TLS or compression.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod amqp;
mod link;
mod mysql;
#[cfg(test)]
mod tests;

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use link::Shared;

/// What the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// MySQL's and MariaDB's.
    Mysql,
    /// AMQP 0-9-1.
    Amqp,
}

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

impl Way {
    pub(crate) const fn back(self) -> Self {
        match self {
            Self::ToServer => Self::ToClient,
            Self::ToClient => Self::ToServer,
        }
    }
}

/// What becomes of all that goes one way, on connections of now and later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// It goes on.
    Pass,
    /// It waits, in its order, until it may go on.
    Hold,
    /// It is lost, an end of the connection too; nothing is said to who sent it. A connection that has lost something
    /// stays so: what comes later on it is lost as well, whatever the treatment is then.
    Drop,
    /// It comes so much later.
    Slow(Duration),
    /// It comes one byte at a time.
    Slices,
}

/// A message of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// MySQL: the client has a text run that has these words in it, prepared before or not.
    Statement(&'static str),
    /// AMQP: the client's `basic.ack`.
    Ack,
    /// AMQP: the server's `basic.deliver`, with all of the content.
    Delivery,
}

impl Message {
    /// Whose it is.
    #[must_use]
    pub const fn protocol(self) -> Protocol {
        match self {
            Self::Statement(_) => Protocol::Mysql,
            Self::Ack | Self::Delivery => Protocol::Amqp,
        }
    }

    const fn way(self) -> Way {
        match self {
            Self::Statement(_) | Self::Ack => Way::ToServer,
            Self::Delivery => Way::ToClient,
        }
    }
}

/// What happens to the connection on which the message is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It is cut: who should have got the message never hears it.
    CutBefore,
    /// The message is heard, and the connection cut behind it: there is no answer.
    CutAfter,
    /// The message and all that would follow it are lost; the connection stays open.
    Lose,
    /// The message is heard, and all that comes back is lost; the connection stays open.
    Mute,
    /// Who sent it loses the connection, and the message is kept until [`Proxy::let_go`].
    Keep,
}

/// What happens at the next message of a kind, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The message.
    pub at: Message,
    /// What then.
    pub then: Then,
}

/// A proxy on a port of its own, until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Begins to listen for connections to `server` (`HOST:PORT`).
    ///
    /// # Panics
    /// There is no free port.
    #[must_use]
    pub fn start(server: &str, protocol: Protocol) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, shared) = (listener.local_addr().unwrap(), Arc::new(Shared::new(protocol)));
        let (server, own) = (server.to_owned(), shared.clone());
        thread::spawn(move || {
            for client in listener.incoming() {
                if own.is_over() {
                    return;
                }
                let Ok(client) = client else { continue };
                if own.is_open()
                    && let Ok(server) = TcpStream::connect(&*server)
                {
                    own.begin(client, server);
                }
            }
        });
        Self { address, shared }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Once, for the next message of the kind.
    ///
    /// # Panics
    /// An earlier plan has not come about.
    pub fn plan(&self, plan: Plan) {
        self.shared.change(|state| assert_eq!(state.plan.replace(plan), None));
    }

    /// Whether the plan has come about.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.shared.look(|state| state.plan.is_none())
    }

    /// Takes back a plan that has not come about; whether there was one.
    pub fn forget_plan(&self) -> bool {
        self.shared.change(|state| state.plan.take()).is_some()
    }

    /// Lets a message go on that a plan kept, and ends its connection behind it.
    pub fn let_go(&self) {
        self.shared.change(|state| state.may_go = true);
    }

    /// From now on, until it is said otherwise.
    pub fn treat(&self, way: Way, treatment: Treatment) {
        self.shared.change(|state| *state.treatment_mut(way) = treatment);
    }

    /// Both ways.
    pub fn treat_all(&self, treatment: Treatment) {
        self.treat(Way::ToServer, treatment);
        self.treat(Way::ToClient, treatment);
    }

    /// The connections of now lose everything one way from now on, and neither side is told; new ones are as always.
    pub fn lose(&self, way: Way) {
        self.shared.change(|state| state.lose(way));
    }

    /// The connections of now are half-open: both sides think that they have one.
    pub fn lose_all(&self) {
        self.lose(Way::ToServer);
        self.lose(Way::ToClient);
    }

    /// Ends all connections, on both sides; what was held is lost. New ones are taken.
    pub fn cut(&self) {
        self.shared.change(link::State::cut);
    }

    /// Ends all connections and takes no new ones.
    pub fn close(&self) {
        self.shared.change(|state| {
            state.is_open = false;
            state.cut();
        });
    }

    /// Takes connections again.
    pub fn open(&self) {
        self.shared.change(|state| state.is_open = true);
    }

    /// Everything passes, nothing is planned, and connections that have lost something are ended.
    pub fn heal(&self) {
        self.shared.change(|state| {
            state.plan = None;
            state.is_open = true;
            *state.treatment_mut(Way::ToServer) = Treatment::Pass;
            *state.treatment_mut(Way::ToClient) = Treatment::Pass;
            state.cut_lossy();
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.change(|state| {
            state.is_over = true;
            state.cut();
        });
        // Wakes the listener, which sees that it is over.
        let _ = TcpStream::connect(self.address);
    }
}
