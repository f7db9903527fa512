//! Stands between a client and a server, and cuts or silences one connection at a chosen moment.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// What happens to the next connection on which the client says certain bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// The server never hears them: the connection is cut before.
    CutBefore(&'static [u8]),
    /// The server hears them, the client no answer: the connection is cut behind them.
    CutAfter(&'static [u8]),
    /// The server hears them, the client nothing any more; the connection stays open.
    Silence(&'static [u8]),
}

/// A proxy on a port of its own, until it is dropped; what is connected by then stays so.
#[derive(Debug)]
pub struct Proxy {
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    plan: Arc<Mutex<Option<Plan>>>,
}

impl Proxy {
    /// Begins to listen for connections to `server` (`HOST:PORT`).
    ///
    /// # Panics
    /// There is no free port.
    #[must_use]
    pub fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let plan = Arc::new(Mutex::new(None));
        let (server, own) = (server.to_owned(), Arc::downgrade(&plan));
        thread::spawn(move || {
            for client in listener.incoming() {
                let Some(plan) = own.upgrade() else { return };
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(&*server)) else { continue };
                thread::spawn(move || connection(&client, &server, &plan));
            }
        });
        Self { port, plan }
    }

    /// Once, for the next connection that says it.
    ///
    /// # Panics
    /// An earlier plan has not come about.
    pub fn plan(&self, plan: Plan) {
        let earlier = self.plan.lock().unwrap().replace(plan);
        assert_eq!(earlier, None);
    }

    /// Whether the plan has come about.
    ///
    /// # Panics
    /// A connection's thread has panicked.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.plan.lock().unwrap().is_none()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Wakes the listener, which sees that nobody is left.
        let own = std::mem::take(&mut self.plan);
        drop(own);
        let _ = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], self.port)));
    }
}

fn connection(client: &TcpStream, server: &TcpStream, plan: &Mutex<Option<Plan>>) {
    let silent = Mutex::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            pass(server, client, |_| if *silent.lock().unwrap() { Next::Swallow } else { Next::Pass });
            let _ = client.shutdown(Shutdown::Write);
        });
        pass(client, server, |bytes| {
            let mut plan = plan.lock().unwrap();
            let says = |words: &[u8]| bytes.windows(words.len()).any(|window| window == words);
            let next = match *plan {
                Some(Plan::CutBefore(words)) if says(words) => Next::Cut,
                Some(Plan::CutAfter(words)) if says(words) => Next::PassAndCut,
                Some(Plan::Silence(words)) if says(words) => {
                    *silent.lock().unwrap() = true;
                    Next::Pass
                }
                _ => return Next::Pass,
            };
            *plan = None;
            next
        });
        let _ = server.shutdown(Shutdown::Write);
    });
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Pass,
    Swallow,
    PassAndCut,
    Cut,
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, mut next: impl FnMut(&[u8]) -> Next) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length) = from.read(&mut buffer)
        && length > 0
    {
        let next = next(&buffer[..length]);
        if matches!(next, Next::Pass | Next::PassAndCut) && to.write_all(&buffer[..length]).is_err() {
            return;
        }
        if matches!(next, Next::Cut | Next::PassAndCut) {
            let _ = from.shutdown(Shutdown::Both);
            return;
        }
    }
}
