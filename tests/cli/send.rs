//! `oncebox send`.

use super::stage::{count, json, number, shop};

#[test]
fn each_line_is_one_body_byte_for_byte() {
    let folder = shop();
    folder.write("lines", b"{\"a\": 1}\n\xff\r\n\nlast");
    assert_eq!(folder.oncebox(["send", "shop/orders", "lines"]).done(), "shop/orders: 4 sent\n");
    let sizes = "SELECT sum(length(payload) * CASE local_id WHEN 1 THEN 1 WHEN 2 THEN 100 WHEN 3 THEN 10000 \
                 ELSE 1000000 END) FROM ob_local";
    assert_eq!(number(&folder.path("data/shop.db"), sizes), 8 + 2 * 100 + 4 * 1_000_000);
}

#[test]
fn standard_input_is_read_and_none_at_all_sends_none() {
    let folder = shop();
    let sent = folder.oncebox_with(&["--json", "send", "shop/orders", "-", "--header", "x-shop=7"], b"1\n2\n").done();
    assert_eq!(json(&sent), json(r#"{"source": "shop/orders", "sent": 2}"#));
    assert_eq!(folder.oncebox(["send", "shop/orders"]).done(), "shop/orders: 0 sent\n");
    assert_eq!(count(&folder, "ob_local"), 2);
}

#[test]
fn a_source_or_a_file_that_is_not_there_is_not_found_and_makes_no_store() {
    let folder = shop();
    folder.oncebox(["send", "shop/ordrs"]).fails(5, ["tenant `shop` has no source `ordrs`; it has: orders"]);
    folder.oncebox(["send", "shp/orders"]).fails(5, ["there is no tenant `shp`"]);
    folder.oncebox(["send", "shop/orders", "nope"]).fails(5, ["error[input-file]: cannot read nope: No such file"]);
    assert_eq!(folder.files(), ["oncebox.toml", "schema.sql"]);
    folder.oncebox(["send", "shop/orders", "."]).fails(5, ["error[input-file]: cannot read .: Is a directory"]);
}

#[test]
fn a_line_above_the_limit_is_refused_and_says_how_many_went_before() {
    let folder = shop();
    let mut lines = b"1\n".to_vec();
    lines.extend(vec![b'x'; 4_194_304]);
    folder.write("lines", &lines);
    assert_eq!(folder.oncebox(["send", "shop/orders", "lines"]).done(), "shop/orders: 2 sent\n");
    lines.push(b'x');
    folder.write("lines", &lines);
    let limit = "1 lines were sent, then: cannot read lines: the next line has more than 4194304 bytes \
                 (host.limits.payload_bytes_max)";
    folder.oncebox(["send", "shop/orders", "lines"]).fails(5, [limit]);
    assert_eq!(count(&folder, "ob_local"), 3);
}
