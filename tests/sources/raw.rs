//! A publisher that says what no library lets it say: AMQP by hand, over a plain socket.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use oncebox_core::config::{Hidden, Rabbitmq, Secret};

/// A connection with one channel, in confirm mode.
pub(crate) struct Raw(TcpStream);

/// A short string.
pub(crate) fn short(bytes: &[u8]) -> Vec<u8> {
    [&[u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

/// A long string, or the bytes of a table.
pub(crate) fn long(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

impl Raw {
    pub(crate) fn connect(to: &Rabbitmq) -> Self {
        let mut stream = TcpStream::connect((to.address.host.as_str(), to.address.port)).unwrap();
        stream.write_all(b"AMQP\0\0\x09\x01").unwrap();
        let mut raw = Self(stream);
        let Some(Secret::Plain(Hidden(password))) = &to.password else { panic!("a password in clear text") };
        let login = format!("\0{}\0{password}", to.address.user);
        raw.expect(10, 10);
        raw.method(0, 10, 11, &[long(b""), short(b"PLAIN"), long(login.as_bytes()), short(b"en_US")].concat());
        raw.expect(10, 30);
        raw.method(0, 10, 31, &[0, 1, 0, 2, 0, 0, 0, 0]);
        raw.method(0, 10, 40, &[short(to.address.space.as_bytes()), vec![0, 0]].concat());
        raw.expect(10, 41);
        raw.method(1, 20, 10, &short(b""));
        raw.expect(20, 11);
        raw.method(1, 85, 10, &[0]);
        raw.expect(85, 11);
        raw
    }

    /// Publishes and waits for the confirm: `properties` begins with the flags.
    pub(crate) fn publish(&mut self, exchange: &[u8], routing_key: &[u8], properties: &[u8], body: &[u8]) {
        let what = [vec![0, 0], short(exchange), short(routing_key), vec![0]].concat();
        self.method(1, 60, 40, &what);
        let head = [&[0, 60, 0, 0], (body.len() as u64).to_be_bytes().as_slice(), properties].concat();
        self.frame(2, 1, &head);
        self.frame(3, 1, body);
        self.expect(60, 80);
    }

    fn method(&mut self, channel: u16, class: u16, method: u16, arguments: &[u8]) {
        self.frame(1, channel, &[&class.to_be_bytes(), method.to_be_bytes().as_slice(), arguments].concat());
    }

    fn frame(&mut self, kind: u8, channel: u16, payload: &[u8]) {
        let frame = [&[kind], channel.to_be_bytes().as_slice(), &long(payload), &[0xce]].concat();
        self.0.write_all(&frame).unwrap();
    }

    fn expect(&mut self, class: u16, method: u16) {
        let mut head = [0; 7];
        self.0.read_exact(&mut head).unwrap();
        let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]);
        let mut payload = vec![0; usize::try_from(size).unwrap() + 1];
        self.0.read_exact(&mut payload).unwrap();
        let said = [[payload[0], payload[1]], [payload[2], payload[3]]].map(u16::from_be_bytes);
        assert_eq!(said, [class, method], "{}", String::from_utf8_lossy(&payload));
    }
}
