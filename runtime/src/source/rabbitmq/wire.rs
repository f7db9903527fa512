//! The stream under the library's connection: TLS where it is asked for, the sieve, and an end to a handshake that
//! nobody answers.

use std::{
    fmt, io,
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use async_rs::{Runtime, Tokio, traits::Reactor, util::RuntimeParts};
use futures_io::{AsyncRead, AsyncWrite};
use futures_util::Stream;
use lapin::tcp::AsyncTcpStream;
use tokio::time::Sleep;

use super::sieve::Sieve;

/// Bytes read at once.
const READ: usize = 64 << 10;

/// What the library runs on: tokio, with streams of ours.
pub(super) type Kit = RuntimeParts<Tokio, Wires>;

/// The runtime that the caller is in.
pub(super) fn runtime() -> Runtime<Kit> {
    Runtime::new(RuntimeParts::new(Tokio::current(), Wires(Tokio::current())))
}

/// The stream of one connection.
pub(super) struct Wire {
    inner: AsyncTcpStream<<Tokio as Reactor>::TcpStream>,
    sieve: Sieve,
    /// What was read and not given on yet.
    ready: Vec<u8>,
    given: usize,
    buffer: Vec<u8>,
    handshake: Pin<Box<Sleep>>,
    connected: Arc<AtomicBool>,
}

impl Wire {
    /// Over a stream. The library waits without an end for the answers of a handshake; if `connected` is not set by
    /// then, its reading fails, so that it gives the connection up.
    pub(super) fn new(
        inner: AsyncTcpStream<<Tokio as Reactor>::TcpStream>,
        until: tokio::time::Instant,
        connected: Arc<AtomicBool>,
    ) -> Self {
        Self {
            inner,
            sieve: Sieve::default(),
            ready: Vec::new(),
            given: 0,
            buffer: vec![0; READ],
            handshake: Box::pin(tokio::time::sleep_until(until)),
            connected,
        }
    }

    fn give(&mut self, out: &mut [u8]) -> usize {
        let rest = &self.ready[self.given..];
        let len = rest.len().min(out.len());
        out[..len].copy_from_slice(&rest[..len]);
        self.given += len;
        if self.given == self.ready.len() {
            self.ready.clear();
            self.given = 0;
        }
        len
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        loop {
            if !this.ready.is_empty() {
                return Poll::Ready(Ok(this.give(out)));
            }
            if !this.connected.load(Ordering::Relaxed) && this.handshake.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            let read = ready!(Pin::new(&mut this.inner).poll_read(cx, &mut this.buffer))?;
            if read == 0 {
                return Poll::Ready(Ok(0));
            }
            this.sieve.push(&this.buffer[..read], &mut this.ready);
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_close(cx)
    }
}

/// Says to the library which streams it gets; it makes none itself.
#[derive(Clone)]
pub(super) struct Wires(Tokio);

impl fmt::Debug for Wires {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wires")
    }
}

fn not_asked_for<T>() -> io::Result<T> {
    Err(io::Error::other("streams are opened by oncebox itself"))
}

impl Reactor for Wires {
    type TcpStream = Wire;
    type Sleep = <Tokio as Reactor>::Sleep;

    fn register<H: io::Read + io::Write + AsFd + AsRawFd + Send + 'static>(
        &self,
        _socket: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        not_asked_for::<Wire>()
    }

    fn sleep(&self, time: Duration) -> Self::Sleep {
        self.0.sleep(time)
    }

    fn interval(&self, time: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.0.interval(time)
    }

    fn tcp_connect_addr(
        &self,
        _address: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        std::future::ready(not_asked_for())
    }
}
