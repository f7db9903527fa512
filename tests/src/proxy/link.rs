//! The connections of a proxy: a thread for each way of each, and what they are told.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{Shutdown, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use super::{Message, Plan, Protocol, Then, Treatment, Way, amqp, mysql};
use crate::patience::pass;

/// What a piece of a stream says, as far as a plan may wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Says {
    /// Something else.
    Nothing,
    /// The client has this text run.
    Statement(String),
    /// `basic.ack`.
    Ack,
    /// `basic.deliver`, with its content.
    Delivery,
}

impl Says {
    fn is(&self, message: Message) -> bool {
        match (self, message) {
            (Self::Statement(text), Message::Statement(words)) => text.contains(words),
            (Self::Ack, Message::Ack) | (Self::Delivery, Message::Delivery) => true,
            (Self::Nothing | Self::Statement(_) | Self::Ack | Self::Delivery, _) => false,
        }
    }
}

/// Cuts one way of a connection into whole messages.
pub(super) enum Reader {
    Mysql(mysql::Reader),
    Amqp(amqp::Reader),
}

impl Reader {
    /// For both ways of a connection.
    fn both(protocol: Protocol) -> [Self; 2] {
        match protocol {
            Protocol::Mysql => mysql::Reader::both().map(Self::Mysql),
            Protocol::Amqp => [amqp::Reader::default(), amqp::Reader::default()].map(Self::Amqp),
        }
    }

    /// The first piece: how long it is, and what it says. `None`: it is not whole yet.
    fn next(&mut self, bytes: &[u8]) -> Option<(usize, Says)> {
        match self {
            Self::Mysql(reader) => reader.next(bytes),
            Self::Amqp(reader) => reader.next(bytes),
        }
    }
}

/// What the proxy and the threads of its connections share.
#[derive(Debug)]
pub(super) struct Shared {
    protocol: Protocol,
    state: Mutex<State>,
    changed: Condvar,
}

/// What is asked of the connections, and which there are.
#[derive(Debug)]
pub(super) struct State {
    pub(super) plan: Option<Plan>,
    /// What a plan keeps may go on.
    pub(super) may_go: bool,
    pub(super) is_open: bool,
    pub(super) is_over: bool,
    to_server: Treatment,
    to_client: Treatment,
    links: BTreeMap<u64, Link>,
    taken: u64,
}

/// One connection.
#[derive(Debug)]
struct Link {
    client: TcpStream,
    server: TcpStream,
    to_server: Flow,
    to_client: Flow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Open,
    /// Something was lost, so all that follows is, an end too.
    Lost,
    /// Nobody is there to hear it any more.
    Unheard,
    Ended,
}

/// What to do with a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Pass,
    Swallow,
    /// It passes, and the connection ends behind it.
    PassAndEnd,
    /// The same, but only when it is let go.
    Keep,
    /// The connection is over.
    Stop,
}

impl State {
    pub(super) fn treatment_mut(&mut self, way: Way) -> &mut Treatment {
        match way {
            Way::ToServer => &mut self.to_server,
            Way::ToClient => &mut self.to_client,
        }
    }

    /// How many connections there have been.
    #[cfg(test)]
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Connections that are not forgotten.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.links.len()
    }

    pub(super) fn lose(&mut self, way: Way) {
        for link in self.links.values_mut() {
            *link.flow(way) = Flow::Lost;
        }
    }

    pub(super) fn cut(&mut self) {
        for link in std::mem::take(&mut self.links).into_values() {
            link.end();
        }
    }

    /// Ends the connections that have lost something.
    pub(super) fn cut_lossy(&mut self) {
        let lossy = |_: &u64, link: &mut Link| link.to_server == Flow::Lost || link.to_client == Flow::Lost;
        for (_, link) in self.links.extract_if(.., lossy) {
            link.end();
        }
    }

    /// What is to be done with a piece now; `None`: it has to wait.
    fn step(&mut self, id: u64, way: Way, says: &Says) -> Option<Step> {
        let treatment = *self.treatment_mut(way);
        let Some(link) = self.links.get_mut(&id) else { return Some(Step::Stop) };
        if matches!(link.flow(way), Flow::Lost | Flow::Unheard) {
            return Some(Step::Swallow);
        }
        if let Some(Plan { then, .. }) = self.plan.take_if(|plan| plan.at.way() == way && says.is(plan.at)) {
            return match then {
                Then::CutBefore => {
                    self.links.remove(&id).inspect(Link::end);
                    Some(Step::Stop)
                }
                Then::CutAfter => {
                    *link.flow(way.back()) = Flow::Unheard;
                    Some(Step::PassAndEnd)
                }
                Then::Lose => {
                    *link.flow(way) = Flow::Lost;
                    Some(Step::Swallow)
                }
                Then::Mute => {
                    *link.flow(way.back()) = Flow::Lost;
                    Some(Step::Pass)
                }
                Then::Keep => {
                    *link.flow(way.back()) = Flow::Unheard;
                    let _ = link.from(way).shutdown(Shutdown::Both);
                    self.may_go = false;
                    Some(Step::Keep)
                }
            };
        }
        match treatment {
            Treatment::Pass | Treatment::Slow(_) | Treatment::Slices => Some(Step::Pass),
            Treatment::Hold => None,
            Treatment::Drop => {
                *link.flow(way) = Flow::Lost;
                Some(Step::Swallow)
            }
        }
    }
}

impl Link {
    fn flow(&mut self, way: Way) -> &mut Flow {
        match way {
            Way::ToServer => &mut self.to_server,
            Way::ToClient => &mut self.to_client,
        }
    }

    fn from(&self, way: Way) -> &TcpStream {
        match way {
            Way::ToServer => &self.client,
            Way::ToClient => &self.server,
        }
    }

    fn end(&self) {
        // Either may be closed already.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

impl Shared {
    pub(super) fn new(protocol: Protocol) -> Self {
        let state = State {
            plan: None,
            may_go: false,
            is_open: true,
            is_over: false,
            to_server: Treatment::Pass,
            to_client: Treatment::Pass,
            links: BTreeMap::new(),
            taken: 0,
        };
        Self { protocol, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state())
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let answer = change(&mut self.state());
        self.changed.notify_all();
        answer
    }

    pub(super) fn is_over(&self) -> bool {
        self.look(|state| state.is_over)
    }

    pub(super) fn is_open(&self) -> bool {
        self.look(|state| state.is_open)
    }

    /// Takes a connection; one that came while the proxy was closed is over.
    pub(super) fn begin(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        // Small messages go at once, as without a proxy.
        client.set_nodelay(true).unwrap();
        server.set_nodelay(true).unwrap();
        let (from_client, from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let (to_client, to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let taken = self.change(|state| {
            if !state.is_open || state.is_over {
                return None;
            }
            state.taken += 1;
            let link = Link { client, server, to_server: Flow::Open, to_client: Flow::Open };
            state.links.insert(state.taken, link);
            Some(state.taken)
        });
        let Some(id) = taken else { return };
        let [out, back] = Reader::both(self.protocol);
        for (way, from, to, reader) in
            [(Way::ToServer, from_client, to_server, out), (Way::ToClient, from_server, to_client, back)]
        {
            let pipe = Pipe { shared: self.clone(), id, way, to };
            thread::spawn(move || pipe.run(from, reader));
        }
    }

    fn treatment(&self, way: Way) -> Treatment {
        *self.state().treatment_mut(way)
    }

    /// Waits until it is known what to do with a piece.
    fn step(&self, id: u64, way: Way, says: &Says) -> Step {
        let mut state = self.state();
        loop {
            match state.step(id, way, says) {
                Some(Step::Keep) => break,
                Some(step) => return step,
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
        let is_kept = |state: &mut State| !state.may_go && state.links.contains_key(&id);
        state = self.changed.wait_while(state, is_kept).unwrap_or_else(PoisonError::into_inner);
        if state.links.contains_key(&id) { Step::PassAndEnd } else { Step::Stop }
    }

    /// One side has ended the connection: the other one is told, unless that is lost as well.
    fn end(&self, id: u64, way: Way, to: &TcpStream) {
        let is_unheard =
            self.change(|state| state.links.get_mut(&id).is_some_and(|link| *link.flow(way) == Flow::Unheard));
        if is_unheard || self.step(id, way, &Says::Nothing) == Step::Pass {
            let _ = to.shutdown(Shutdown::Write);
            self.ended(id, way);
        }
    }

    fn ended(&self, id: u64, way: Way) {
        self.change(|state| {
            let Some(link) = state.links.get_mut(&id) else { return };
            *link.flow(way) = Flow::Ended;
            if link.to_server == Flow::Ended && link.to_client == Flow::Ended {
                state.links.remove(&id);
            }
        });
    }
}

/// One way of a connection.
struct Pipe {
    shared: Arc<Shared>,
    id: u64,
    way: Way,
    to: TcpStream,
}

impl Pipe {
    fn run(mut self, mut from: TcpStream, mut reader: Reader) {
        let mut buffer = vec![0; 1 << 16];
        let mut waiting: Vec<u8> = Vec::new();
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if let Treatment::Slow(time) = self.shared.treatment(self.way) {
                pass(time);
            }
            waiting.extend_from_slice(&buffer[..length]);
            let mut done = 0;
            while let Some((length, says)) = reader.next(&waiting[done..]) {
                if !self.piece(&waiting[done..done + length], &says) {
                    return;
                }
                done += length;
            }
            waiting.drain(..done);
        }
        // What is left is no whole message.
        if waiting.is_empty() || self.piece(&waiting, &Says::Nothing) {
            self.shared.end(self.id, self.way, &self.to);
        }
    }

    /// Whether there is to be a next one.
    fn piece(&mut self, bytes: &[u8], says: &Says) -> bool {
        match self.shared.step(self.id, self.way, says) {
            Step::Pass => self.write(bytes),
            Step::Swallow => true,
            Step::Stop => false,
            Step::PassAndEnd | Step::Keep => {
                self.write(bytes);
                // Not the other way: an answer to a closed socket would be a reset, and that overtakes what was written.
                let _ = self.to.shutdown(Shutdown::Write);
                self.shared.change(|state| {
                    let link = state.links.get(&self.id);
                    link.map(|link| link.from(self.way).shutdown(Shutdown::Both))
                });
                self.shared.ended(self.id, self.way);
                false
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> bool {
        let treatment = self.shared.treatment(self.way);
        let size = if treatment == Treatment::Slices { 1 } else { bytes.len() };
        bytes.chunks(size.max(1)).all(|slice| self.to.write_all(slice).is_ok())
    }
}
