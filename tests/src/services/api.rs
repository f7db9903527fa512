//! RabbitMQ's management API: one plain HTTP request a question.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use serde_json::Value;

use crate::patience::PATIENCE;

/// Where the API is, and who asks.
#[derive(Debug, Clone)]
pub struct Api {
    address: String,
    authorization: String,
}

impl Api {
    /// `http://USER:PASSWORD@HOST:PORT`
    pub(super) fn new(url: &str) -> Self {
        let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("{url} does not begin with http://"));
        let (user, address) = rest.rsplit_once('@').unwrap_or(("guest:guest", rest));
        Self { address: address.trim_end_matches('/').to_owned(), authorization: base64(user.as_bytes()) }
    }

    /// Asks; the status and the answer, `Null` where it is none in JSON. Each part of `path` is encoded by the caller.
    ///
    /// # Errors
    /// Nothing answers there.
    pub fn try_ask(&self, method: &str, path: &str, body: Option<&Value>) -> std::io::Result<(u16, Value)> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let (address, authorization) = (&self.address, &self.authorization);
        // Version 1.0: the answer ends with the connection, and is in one piece.
        let request = format!(
            "{method} /api{path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Basic {authorization}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Ok((status, serde_json::from_str(body).unwrap_or(Value::Null)))
    }

    /// Asks for something that must succeed.
    ///
    /// # Panics
    /// It does not.
    #[track_caller]
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let (status, answer) = self.try_ask(method, path, body).unwrap();
        assert!((200..300).contains(&status), "{method} /api{path}: {status} {answer}");
        answer
    }
}

/// A part of a path, as it stands in a URL.
#[must_use]
pub(super) fn encoded(part: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    part.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |chunk: &[u8]| {
        let number = (0..3).fold(0_usize, |number, at| number << 8 | usize::from(chunk.get(at).copied().unwrap_or(0)));
        let letter = |at: usize| char::from(LETTERS[number >> (18 - 6 * at) & 63]);
        (0..4).map(|at| if at <= chunk.len() { letter(at) } else { '=' }).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads_as_rfc_4648_shows() {
        let pairs = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (text, wanted) in pairs {
            assert_eq!(base64(text.as_bytes()), wanted);
        }
        assert_eq!(Api::new("http://guest:guest@127.0.0.1:15675").authorization, "Z3Vlc3Q6Z3Vlc3Q=");
    }

    #[test]
    fn a_part_of_a_path_keeps_no_slash() {
        assert_eq!(encoded("/a b.c%"), "%2Fa%20b.c%25");
    }
}
