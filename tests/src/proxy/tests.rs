use std::io::{Read as _, Write as _};

use super::*;
use crate::patience::{PATIENCE, eventually};

/// A client and what the server has of its connection.
struct Ends {
    proxy: Proxy,
    listener: TcpListener,
    client: TcpStream,
    server: TcpStream,
}

fn ends(protocol: Protocol) -> Ends {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start(&listener.local_addr().unwrap().to_string(), protocol);
    let (client, server) = another(&proxy, &listener);
    Ends { proxy, listener, client, server }
}

fn another(proxy: &Proxy, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let taken = || proxy.shared.look(link::State::taken);
    let before = taken();
    let client = TcpStream::connect(proxy.address()).unwrap();
    let (server, _) = listener.accept().unwrap();
    // The server hears of it first.
    eventually("the proxy has it", PATIENCE, || (taken() > before).then_some(()));
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    (client, server)
}

#[track_caller]
fn hears(mut stream: &TcpStream, wanted: &[u8]) {
    let mut heard = vec![0; wanted.len()];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(heard, wanted);
}

/// The connection ends, and nothing is left to be heard.
#[track_caller]
fn ends_here(mut stream: &TcpStream) {
    let mut rest = Vec::new();
    let ended = stream.read_to_end(&mut rest);
    assert_eq!(rest, Vec::<u8>::new());
    // A reset is an end too.
    let is_late = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    assert!(!ended.is_err_and(|error| is_late(&error)), "no end comes");
}

/// Neither a byte nor an end comes: the time is what is to be shown.
#[track_caller]
fn hears_nothing(mut stream: &TcpStream) {
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(stream.read(&mut [0]).is_err());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
}

fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&length[..3], &[number], payload].concat()
}

fn query(text: &str) -> Vec<u8> {
    packet(0, &[b"\x03", text.as_bytes()].concat())
}

fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let size = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[kind], &channel.to_be_bytes()[..], &size, payload, b"\xce"].concat()
}

fn method(number: u16, rest: &[u8]) -> Vec<u8> {
    [&60_u16.to_be_bytes(), &number.to_be_bytes(), rest].concat()
}

/// Two bodies, and frames of others between them.
fn delivery(tag: u8) -> Vec<u8> {
    let header = [&60_u16.to_be_bytes()[..], &[0, 0], &5_u64.to_be_bytes(), &[0, 0]].concat();
    [
        frame(1, 7, &method(60, &[tag])),
        frame(8, 0, b""),
        frame(2, 7, &header),
        frame(3, 7, b"abc"),
        frame(3, 8, b"of another channel"),
        frame(3, 7, b"de"),
    ]
    .concat()
}

#[test]
fn a_statement_is_seen_however_its_bytes_are_split_and_the_connection_cut_before_it() {
    for size in [1, 2, 3, 5, 1_000] {
        let Ends { proxy, listener, mut client, server } = ends(Protocol::Mysql);
        proxy.plan(Plan { at: Message::Statement("; COMMIT"), then: Then::CutBefore });
        let harmless = [packet(1, b"\x03 login: ; COMMIT"), query("SELECT 'READ COMMITTED'")].concat();
        let all = [harmless.clone(), query("RELEASE SAVEPOINT x; COMMIT"), query("SELECT 1")].concat();
        for piece in all.chunks(size) {
            // It may be cut while the last ones are said.
            let _ = client.write_all(piece);
        }
        hears(&server, &harmless);
        ends_here(&server);
        ends_here(&client);
        assert!(proxy.is_done(), "{size}");
        // Once: the next one passes.
        let (mut client, server) = another(&proxy, &listener);
        client.write_all(&query("COMMIT; COMMIT")).unwrap();
        hears(&server, &query("COMMIT; COMMIT"));
    }
}

#[test]
fn cut_behind_a_statement_the_server_hears_it_and_the_client_no_answer() {
    let Ends { proxy, mut client, mut server, .. } = ends(Protocol::Mysql);
    proxy.plan(Plan { at: Message::Statement("COMMIT"), then: Then::CutAfter });
    client.write_all(&[query("COMMIT"), query("SELECT 1")].concat()).unwrap();
    hears(&server, &query("COMMIT"));
    ends_here(&server);
    server.write_all(&packet(1, b"ok")).unwrap();
    ends_here(&client);
    drop(server);
    eventually("the connection is forgotten", PATIENCE, || (proxy.shared.look(link::State::count) == 0).then_some(()));
}

#[test]
fn a_prepared_statement_is_known_by_its_number_until_it_is_closed() {
    let Ends { proxy, mut client, mut server, .. } = ends(Protocol::Mysql);
    for (text, number) in [("UPDATE a", 7_u32), ("COMMIT", 300)] {
        let prepare = packet(0, &[b"\x16", text.as_bytes()].concat());
        client.write_all(&prepare).unwrap();
        hears(&server, &prepare);
        let prepared = packet(1, &[b"\0", &number.to_le_bytes()[..], b"\0\0"].concat());
        server.write_all(&prepared).unwrap();
        hears(&client, &prepared);
    }
    proxy.plan(Plan { at: Message::Statement("COMMIT"), then: Then::CutBefore });
    let of = |command: u8, number: u32| packet(0, &[&[command][..], &number.to_le_bytes(), b"values"].concat());
    let harmless = [of(0x17, 7), of(0x19, 7), of(0x17, 7)].concat();
    client.write_all(&harmless).unwrap();
    hears(&server, &harmless);
    assert!(!proxy.is_done());
    client.write_all(&of(0x17, 300)).unwrap();
    ends_here(&server);
    assert!(proxy.is_done());
}

#[test]
fn an_ack_and_all_behind_it_are_lost_on_a_connection_that_stays() {
    let Ends { proxy, mut client, mut server, .. } = ends(Protocol::Amqp);
    proxy.plan(Plan { at: Message::Ack, then: Then::Lose });
    let before = [b"AMQP\0\0\x09\x01".to_vec(), frame(1, 1, &method(20, b"consume"))].concat();
    let ack = frame(1, 1, &method(80, b"12345678m"));
    client.write_all(&[before.clone(), ack.clone(), frame(8, 0, b"")].concat()).unwrap();
    hears(&server, &before);
    hears_nothing(&server);
    server.write_all(&delivery(1)).unwrap();
    hears(&client, &delivery(1));
    // Neither what comes later, nor the end.
    proxy.treat_all(Treatment::Pass);
    client.write_all(&ack).unwrap();
    drop(client);
    hears_nothing(&server);
    proxy.cut();
    ends_here(&server);
}

#[test]
fn a_delivery_is_one_message_with_its_content() {
    for size in [1, 4, 9, 1_000] {
        let Ends { proxy, mut client, mut server, .. } = ends(Protocol::Amqp);
        proxy.plan(Plan { at: Message::Delivery, then: Then::CutAfter });
        let all = [frame(1, 7, &method(21, b"consume-ok")), delivery(1), delivery(2)].concat();
        for piece in all.chunks(size) {
            let _ = server.write_all(piece);
        }
        hears(&client, &all[..all.len() - delivery(2).len()]);
        ends_here(&client);
        ends_here(&server);
        let _ = client.write_all(&frame(1, 7, &method(80, b"an ack that comes too late")));
    }
}

#[test]
fn muted_the_server_is_spoken_to_and_not_heard() {
    let Ends { proxy, mut client, mut server, .. } = ends(Protocol::Mysql);
    proxy.plan(Plan { at: Message::Statement("SAVEPOINT"), then: Then::Mute });
    client.write_all(&query("SAVEPOINT ob_marks")).unwrap();
    hears(&server, &query("SAVEPOINT ob_marks"));
    server.write_all(&packet(1, b"ok")).unwrap();
    hears_nothing(&client);
    client.write_all(&query("SELECT 1")).unwrap();
    hears(&server, &query("SELECT 1"));
}

#[test]
fn a_kept_message_comes_when_it_is_let_go_and_its_client_is_gone() {
    let Ends { proxy, listener, mut client, server } = ends(Protocol::Mysql);
    proxy.plan(Plan { at: Message::Statement("COMMIT"), then: Then::Keep });
    client.write_all(&[query("SELECT 1"), query("COMMIT"), query("SELECT 2")].concat()).unwrap();
    hears(&server, &query("SELECT 1"));
    ends_here(&client);
    hears_nothing(&server);
    let (mut other, other_server) = another(&proxy, &listener);
    other.write_all(&query("COMMIT")).unwrap();
    hears(&other_server, &query("COMMIT"));
    proxy.let_go();
    hears(&server, &query("COMMIT"));
    ends_here(&server);
}

#[test]
fn what_is_held_waits_one_way_its_end_too_and_is_lost_by_a_cut() {
    let Ends { proxy, listener, mut client, mut server } = ends(Protocol::Mysql);
    client.write_all(&query("a")).unwrap();
    hears(&server, &query("a"));
    proxy.treat(Way::ToServer, Treatment::Hold);
    client.write_all(&query("b")).unwrap();
    server.write_all(&packet(1, b"c")).unwrap();
    hears(&client, &packet(1, b"c"));
    hears_nothing(&server);
    proxy.treat(Way::ToServer, Treatment::Pass);
    hears(&server, &query("b"));
    proxy.treat(Way::ToServer, Treatment::Hold);
    client.write_all(&query("d")).unwrap();
    drop(client);
    hears_nothing(&server);
    proxy.cut();
    ends_here(&server);
    proxy.treat(Way::ToServer, Treatment::Pass);
    let (mut client, server) = another(&proxy, &listener);
    client.write_all(&query("e")).unwrap();
    hears(&server, &query("e"));
}

#[test]
fn a_half_open_connection_is_silent_and_new_ones_are_not() {
    let Ends { proxy, listener, mut client, mut server } = ends(Protocol::Mysql);
    proxy.lose_all();
    client.write_all(&query("a")).unwrap();
    server.write_all(&packet(1, b"b")).unwrap();
    hears_nothing(&server);
    hears_nothing(&client);
    let (mut other, other_server) = another(&proxy, &listener);
    other.write_all(&query("c")).unwrap();
    hears(&other_server, &query("c"));
    drop(client);
    hears_nothing(&server);
    proxy.heal();
    ends_here(&server);
    other.write_all(&query("d")).unwrap();
    hears(&other_server, &query("d"));
}

#[test]
fn a_dropped_way_loses_what_comes_on_new_connections_too_and_the_other_way_goes() {
    let Ends { proxy, listener, .. } = ends(Protocol::Mysql);
    proxy.treat(Way::ToClient, Treatment::Drop);
    let (mut client, mut server) = another(&proxy, &listener);
    client.write_all(&query("a")).unwrap();
    hears(&server, &query("a"));
    server.write_all(&packet(1, b"b")).unwrap();
    hears_nothing(&client);
    proxy.heal();
    ends_here(&client);
    ends_here(&server);
}

#[test]
fn a_closed_proxy_ends_what_there_is_and_takes_nothing_until_it_is_opened() {
    let Ends { proxy, listener, client, server } = ends(Protocol::Mysql);
    proxy.close();
    ends_here(&client);
    ends_here(&server);
    ends_here(&TcpStream::connect(proxy.address()).unwrap());
    proxy.open();
    let (mut client, server) = another(&proxy, &listener);
    client.write_all(&query("a")).unwrap();
    hears(&server, &query("a"));
}

#[test]
fn slow_bytes_come_late_and_slices_come_all() {
    let Ends { proxy, mut client, server, .. } = ends(Protocol::Mysql);
    proxy.treat_all(Treatment::Slow(Duration::from_millis(200)));
    client.write_all(&query("a")).unwrap();
    server.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!((&server).read(&mut [0]).is_err(), "it came at once");
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    hears(&server, &query("a"));
    proxy.treat_all(Treatment::Slices);
    let long = query(&"x".repeat(3_000));
    client.write_all(&long).unwrap();
    hears(&server, &long);
}

#[test]
fn the_end_of_one_side_is_the_end_of_the_other() {
    for is_client in [true, false] {
        let Ends { proxy, client, server, .. } = ends(Protocol::Amqp);
        let (mut one, other) = if is_client { (client, server) } else { (server, client) };
        // What is no whole frame is passed on too.
        one.write_all(b"\x01\0\0").unwrap();
        drop(one);
        hears(&other, b"\x01\0\0");
        ends_here(&other);
        drop(other);
        eventually("it is forgotten", PATIENCE, || (proxy.shared.look(link::State::count) == 0).then_some(()));
    }
}

#[test]
fn a_plan_that_did_not_come_about_is_taken_back() {
    let Ends { proxy, mut client, server, .. } = ends(Protocol::Mysql);
    proxy.plan(Plan { at: Message::Statement("COMMIT"), then: Then::CutBefore });
    assert!(proxy.forget_plan() && !proxy.forget_plan());
    client.write_all(&query("COMMIT")).unwrap();
    hears(&server, &query("COMMIT"));
}
