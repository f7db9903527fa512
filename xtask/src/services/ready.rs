//! Whether a server serves, asked over the network as a client would.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use serde_json::Value;

use super::{ports::Ports, server::Server, version::greeting_version};

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The version of the server on those ports of the loopback interface, once it serves.
pub(super) fn version(server: Server, ports: &Ports) -> Option<String> {
    match server {
        Server::Mysql | Server::Mariadb => {
            let mut packet = [0; 256];
            let read = connect(*ports.get("port")?)?.read(&mut packet).ok()?;
            greeting_version(&packet[..read])
        }
        Server::Rabbitmq => {
            // Only after all of its start is over a node listens for clients.
            connect(*ports.get("port")?)?;
            api_version(*ports.get("api_port")?)
        }
    }
}

/// Whether anything listens where a URL of an environment variable points to.
pub(super) fn answers(url: &str, usual_port: u16) -> bool {
    let Some((host, port)) = host_and_port(url, usual_port) else { return false };
    let addresses = (host.as_str(), port).to_socket_addrs();
    addresses.into_iter().flatten().any(|address| TcpStream::connect_timeout(&address, PATIENCE).is_ok())
}

fn connect(port: u16) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    Some(stream)
}

fn api_version(port: u16) -> Option<String> {
    let mut stream = connect(port)?;
    // guest:guest
    let authorization = "Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=";
    let request = format!("GET /api/overview HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n{authorization}\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let overview: Value = serde_json::from_str(body).ok()?;
    Some(overview["rabbitmq_version"].as_str()?.to_owned())
}

/// `scheme://user:password@host:port/path?options`, of which only the host and the port are read.
fn host_and_port(url: &str, usual_port: u16) -> Option<(String, u16)> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (name, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((name, port)) => (name, port.strip_prefix(':')),
        None => host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    };
    let port = port.map_or(Some(usual_port), |port| port.parse().ok())?;
    (!name.is_empty()).then(|| (name.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_are_read_from_a_url() {
        let read = |url| host_and_port(url, 3306).map(|(host, port)| format!("{host} {port}"));
        assert_eq!(read("mysql://root:p%40w@db.example:3307/x?ssl-mode=required").as_deref(), Some("db.example 3307"));
        assert_eq!(read("mysql://root@127.0.0.1").as_deref(), Some("127.0.0.1 3306"));
        assert_eq!(read("amqps://guest:a@b@[::1]:5671/%2f").as_deref(), Some("::1 5671"));
        assert_eq!(read("mysql://[::1]").as_deref(), Some("::1 3306"));
        assert_eq!(read("mysql://host:port"), None);
        assert_eq!(read("localhost:3306"), None);
        assert_eq!(read("mysql:///db"), None);
    }

    #[test]
    fn where_nobody_listens_nobody_answers() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(answers(&format!("mysql://root@127.0.0.1:{port}/db"), 3306));
        drop(listener);
        assert!(!answers(&format!("mysql://root@127.0.0.1:{port}/db"), 3306));
    }
}
