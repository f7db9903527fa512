//! A relay between a host and a server, which a test may stop or cut.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
};

/// Passes bytes on in both directions until it is told otherwise.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Nothing goes to the server.
    is_held: bool,
    /// Connections that were cut: what still waits to go to the server is dropped, and no new ones are taken.
    is_cut: bool,
    streams: Vec<TcpStream>,
}

impl Relay {
    /// In front of a server at `HOST:PORT`.
    ///
    /// # Panics
    /// There is no port left.
    #[must_use]
    pub fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, shared) = (listener.local_addr().unwrap(), Arc::new(Shared::default()));
        let (server, own) = (server.to_owned(), shared.clone());
        // It ends with the test's process: a listener cannot be woken without another connection.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(&server) else { continue };
                own.begin(client, server);
            }
        });
        Self { address, shared }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on nothing that a client says reaches the server; what the server says still comes.
    pub fn hold_to_server(&self) {
        self.shared.change(|state| state.is_held = true);
    }

    /// Ends all connections, on both sides; what was held is lost. New ones are not taken.
    pub fn cut(&self) {
        self.shared.change(|state| {
            state.is_cut = true;
            for stream in state.streams.drain(..) {
                // It may be closed already.
                let _ = stream.shutdown(Shutdown::Both);
            }
        });
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    fn begin(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_cut {
            return;
        }
        state.streams.extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
        let (from_client, from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let own = self.clone();
        thread::spawn(move || pass_on(from_client, server, || own.may_go()));
        thread::spawn(move || pass_on(from_server, client, || true));
    }

    /// Waits as long as it is held; whether what waits may go to the server.
    fn may_go(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let held = self.changed.wait_while(state, |state| state.is_held && !state.is_cut);
        !held.unwrap_or_else(PoisonError::into_inner).is_cut
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, may_go: impl Fn() -> bool) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if !may_go() || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    // An end is news too, and waits like all other news.
    may_go();
    let _ = to.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::patience::PATIENCE;

    #[test]
    fn what_is_held_does_not_reach_the_server_and_is_lost_by_a_cut() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay::to(&server.local_addr().unwrap().to_string());
        let mut client = TcpStream::connect(relay.address()).unwrap();
        let (mut served, _) = server.accept().unwrap();
        for stream in [&client, &served] {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        let mut byte = [0];
        client.write_all(b"a").unwrap();
        served.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"a");
        relay.hold_to_server();
        client.write_all(b"b").unwrap();
        served.write_all(b"c").unwrap();
        client.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"c");
        served.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        assert!(served.read(&mut byte).is_err(), "neither the byte nor an end may have come");
        drop(client);
        assert!(served.read(&mut byte).is_err(), "the client's end is held too");
        served.set_read_timeout(Some(PATIENCE)).unwrap();
        relay.cut();
        assert!(matches!(served.read(&mut byte), Ok(0)), "the connection ends, and the byte is lost");
    }
}
