//! Which failpoints and faults there are is chosen in the environment, and never believed when it is wrong.

use oncebox::{failpoint::Place, planted::Fault};
use oncebox_tests::host::{Site, binary};

/// `cargo verify plain` looks for these words in a build as it is released: here they are.
#[test]
fn a_build_for_tests_has_the_words_by_which_a_release_is_known_to_have_none() {
    let bytes = std::fs::read(binary()).unwrap();
    let places = Place::ALL.iter().map(|place| place.name());
    let names = places.chain(Fault::ALL.iter().map(|fault| fault.name()));
    for word in ["ONCEBOX_FAILPOINTS", "ONCEBOX_PLANTED_FAULT", "a failpoint is reached"].into_iter().chain(names) {
        assert!(bytes.windows(word.len()).any(|window| window == word.as_bytes()), "{word}");
    }
}

#[test]
fn a_place_or_a_fault_that_does_not_exist_is_refused_before_anything_else() {
    let site = Site::new("");
    for (variable, value, why) in [
        ("ONCEBOX_FAILPOINTS", "after-comit=kill", "names no place; there are after-take,"),
        ("ONCEBOX_PLANTED_FAULT", "insert", "is no fault; there are ack_before_commit,"),
    ] {
        let ended = site.run_armed(&["--version"], &[(variable, value)]);
        assert_eq!(ended.code, Some(2), "{}", ended.err);
        assert!(ended.err.contains(value) && ended.err.contains(why), "{}", ended.err);
    }
    assert_eq!(site.run_armed(&["--version"], &[("ONCEBOX_FAILPOINTS", "after-commit=kill")]).code, Some(0));
}
