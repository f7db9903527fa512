//! MySQL's protocol, as far as it is needed to see what a client has run: packets, commands, prepared statements
//! (MySQL 9.7 internals, "Client/Server Protocol").

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Way, link::Says};

/// A packet of this length goes on in the next one.
const PACKET_MAX: usize = 0xff_ffff;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const CLOSE: u8 = 0x19;
/// How the answer to a prepared statement begins.
const PREPARED: u8 = 0x00;

/// Reads one way of a connection.
pub(super) struct Reader {
    way: Way,
    statements: Arc<Mutex<Statements>>,
}

/// The prepared statements of a connection.
#[derive(Default)]
struct Statements {
    /// The answer is not seen yet.
    asked: Option<String>,
    known: HashMap<u32, String>,
}

impl Reader {
    /// To the server and to the client.
    pub(super) fn both() -> [Self; 2] {
        let statements = Arc::<Mutex<Statements>>::default();
        [Way::ToServer, Way::ToClient].map(|way| Self { way, statements: statements.clone() })
    }

    /// The first message and its length.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<(usize, Says)> {
        let (first, number) = packet(bytes)?;
        let mut end = 4 + first.len();
        let mut last = first.len();
        while last == PACKET_MAX {
            last = packet(&bytes[end..])?.0.len();
            end += 4 + last;
        }
        let says = match (self.way, number) {
            (Way::ToServer, 0) => self.command(first),
            (Way::ToClient, 1) => self.answer(first),
            (Way::ToServer | Way::ToClient, _) => Says::Nothing,
        };
        Some((end, says))
    }

    fn command(&self, payload: &[u8]) -> Says {
        let Some((command, rest)) = payload.split_first() else { return Says::Nothing };
        let text = || String::from_utf8_lossy(rest).into_owned();
        match *command {
            QUERY => return Says::Statement(text()),
            PREPARE => self.statements().asked = Some(text()),
            EXECUTE => {
                let statements = self.statements();
                let known = number(rest).and_then(|number| statements.known.get(&number));
                return known.map_or(Says::Nothing, |text| Says::Statement(text.clone()));
            }
            CLOSE => drop(number(rest).and_then(|number| self.statements().known.remove(&number))),
            _ => {}
        }
        Says::Nothing
    }

    fn answer(&self, payload: &[u8]) -> Says {
        let mut statements = self.statements();
        if let (Some(text), Some((&PREPARED, rest))) = (statements.asked.take(), payload.split_first())
            && let Some(number) = number(rest)
        {
            statements.known.insert(number, text);
        }
        Says::Nothing
    }

    fn statements(&self) -> MutexGuard<'_, Statements> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first packet's payload and its number in the exchange; a command has 0.
fn packet(bytes: &[u8]) -> Option<(&[u8], u8)> {
    let (header, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
    Some((rest.get(..length)?, header[3]))
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}
