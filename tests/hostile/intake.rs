//! Taking a module in: what is refused, and what becomes of a broken cache.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use oncebox::plugin::Engine;
use oncebox_tests::wat::{source, wat_component, wat_component_of_version, with_manifest};
use tempfile::TempDir;

use crate::sandbox::{ENGINE_LIMITS, MANIFEST, attempt, compiler, component, engine, lives, try_load};

async fn refusal(bytes: &[u8]) -> (&'static str, String) {
    let error = try_load(bytes).await.err().unwrap();
    lives().await;
    (error.code(), error.to_string())
}

fn text_component(wat: &str) -> Vec<u8> {
    with_manifest(wat::parse_str(wat).unwrap(), MANIFEST)
}

#[tokio::test]
async fn a_wrong_upload_is_refused_by_its_own_name() {
    assert_eq!(refusal(b"").await.0, "module-empty");
    assert_eq!(refusal(b"(component)").await.0, "module-is-text");
    assert_eq!(refusal(&wat::parse_str("(module)").unwrap()).await.0, "module-is-core");
    let good = component("probes/good");
    assert_eq!(refusal(&good[..good.len() / 2]).await.0, "module-malformed");
    assert_eq!(refusal(&vec![0; 1024 * 1024 + 1]).await.0, "module-too-large");
}

#[tokio::test]
async fn an_import_that_no_plugin_is_given_is_refused_by_name() {
    let (code, text) =
        refusal(&text_component(r#"(component (import "wasi:sockets/network@0.2.0" (instance)))"#)).await;
    assert_eq!(code, "import-unknown");
    assert_eq!(
        text,
        "the component imports `wasi:sockets/network@0.2.0`: \
         a plugin has no network; emit an event to a destination instead"
    );
}

#[tokio::test]
async fn a_component_that_is_no_handler_is_refused() {
    let (code, text) = refusal(&text_component("(component)")).await;
    assert_eq!(code, "export-missing");
    assert!(text.contains("oncebox:handler/guest@1.0.0"), "{text}");
}

#[tokio::test]
async fn a_guest_of_another_shape_is_refused_with_the_whole_chain() {
    let skewed = r#"(component
        (core module $m (func (export "f")))
        (core instance $i (instantiate $m))
        (func $handle (canon lift (core func $i "f")))
        (instance $guest (export "handle" (func $handle)))
        (export "oncebox:handler/guest@1.0.0" (instance $guest)))"#;
    let error = try_load(&text_component(skewed)).await.unwrap().dry_run().await.unwrap_err();
    assert_eq!(error.code(), "contract-skew");
    let text = error.to_string();
    assert!(text.contains("oncebox:handler@1.0.0"), "{text}");
    assert!(text.contains("expected 1-tuple, found 0-tuple"), "{text}");
}

#[tokio::test]
async fn an_import_of_another_shape_is_refused_with_the_whole_chain() {
    let skewed = r#"(component
        (import "oncebox:handler/context@1.0.0" (instance (export "now-us" (func (result string)))))
        (instance $guest)
        (export "oncebox:handler/guest@1.0.0" (instance $guest)))"#;
    let (code, text) = refusal(&text_component(skewed)).await;
    assert_eq!(code, "contract-skew");
    assert!(text.contains("`now-us`") && text.contains("expected `u64` found `string`"), "{text}");
}

#[tokio::test]
async fn a_component_without_a_manifest_is_refused() {
    let bare = component("probes/good");
    let bare = &bare[..bare.len() - with_manifest(Vec::new(), MANIFEST).len()];
    assert_eq!(refusal(bare).await.0, "manifest-missing");
    let broken = wat_component(&source("probes/good"), "name = ");
    assert_eq!(refusal(&broken).await.0, "manifest-invalid");
}

#[tokio::test]
async fn a_module_that_is_not_valid_is_refused_by_the_compilers_process() {
    // Well formed, so that only the validator finds it: the function leaves a value behind.
    let invalid = r#"(component
        (core module $m (func (export "f") (i32.const 1)))
        (core instance $i (instantiate $m))
        (func $handle (canon lift (core func $i "f")))
        (instance $guest (export "handle" (func $handle)))
        (export "oncebox:handler/guest@1.0.0" (instance $guest)))"#;
    let (code, text) = refusal(&text_component(invalid)).await;
    assert_eq!(code, "compile-failed");
    assert!(text.contains("type mismatch"), "{text}");
}

#[tokio::test]
async fn proposals_that_no_plugin_needs_are_refused() {
    for proposal in [
        "(memory i64 1)",
        "(memory 1) (memory 1)",
        "(memory 1 1 shared)",
        "(tag $t)",
        "(type (struct (field i32)))",
        "(func (param v128) (result v128) (i32x4.relaxed_trunc_f32x4_s (local.get 0)))",
    ] {
        let component = format!(
            r#"(component (core module {proposal}) (instance $guest) (export "oncebox:handler/guest@1.0.0" (instance $guest)))"#
        );
        let (code, text) = refusal(&text_component(&component)).await;
        assert_eq!(code, "compile-failed", "{proposal}: {text}");
    }
}

#[tokio::test]
async fn a_module_beyond_the_static_caps_is_refused_before_it_is_compiled() {
    let cases = [
        (
            format!("(core module {})", "(func)".repeat(100_001)),
            "the component has 100001 functions, the limit is 100000",
        ),
        (
            format!("{}{}", "(component".repeat(17), ")".repeat(17)),
            "the component has 17 levels of nesting, the limit is 16",
        ),
        (
            format!("(core module $m) {}", "(core instance (instantiate $m))".repeat(65)),
            "the component has 65 core instances, the limit is 64",
        ),
        ("(core module (table 20001 funcref))".to_owned(), "the component needs 20001 elements in one table"),
        ("(core module (memory 65536))".to_owned(), "the component needs 4294967296 bytes of memory"),
    ];
    for (content, start) in cases {
        let component = format!(
            r#"(component {content} (instance $guest) (export "oncebox:handler/guest@1.0.0" (instance $guest)))"#
        );
        let text = refusal(&text_component(&component)).await.1;
        assert!(text.starts_with(start), "{text}");
    }
}

#[tokio::test]
async fn a_module_of_a_newer_minor_version_runs_if_it_uses_only_what_there_is() {
    let newer = wat_component_of_version("1.7.0", &source("probes/good"), MANIFEST);
    let module = try_load(&newer).await.unwrap();
    module.dry_run().await.unwrap();
    assert!(matches!(module.run(attempt()).await, oncebox::plugin::Outcome::Applied { .. }));
}

#[tokio::test]
async fn a_module_of_another_major_version_is_refused() {
    let (code, text) = refusal(&wat_component_of_version("2.0.0", &source("probes/skip"), MANIFEST)).await;
    assert_eq!(code, "export-missing");
    assert!(text.contains("oncebox:handler/guest@2.0.0"), "{text}");
}

/// Whatever a flipped bit makes of a module: it is refused, or it runs to some end.
#[tokio::test]
async fn a_damaged_module_takes_nothing_with_it() {
    let good = component("probes/good");
    let (mut refused, mut ran) = (0, 0);
    for step in 0..64 {
        let mut damaged = good.clone();
        damaged[good.len() * step / 64] ^= 1 << (step % 8);
        match try_load(&damaged).await {
            Err(_) => refused += 1,
            Ok(module) => {
                let _ = module.dry_run().await;
                let _ = module.run(attempt()).await;
                ran += 1;
            }
        }
    }
    assert!(refused > 0 && ran > 0, "{refused} refused, {ran} ran: the flips show nothing");
    lives().await;
}

#[tokio::test]
async fn a_good_module_passes_its_dry_run() {
    let module = try_load(&component("probes/good")).await.unwrap();
    module.dry_run().await.unwrap();
    assert_eq!(module.manifest().name, "hostile");
}

fn entries(dir: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// An engine that cannot compile takes a module only from the cache.
fn engine_without_compiler() -> std::sync::Arc<Engine> {
    Engine::with_compiler(&ENGINE_LIMITS, oncebox::plugin::Compiler::new("/bin/false", [] as [&str; 0])).unwrap()
}

#[tokio::test]
async fn native_code_is_kept_and_found_again() {
    let dir = TempDir::new().unwrap();
    let cache = dir.path().join("modules");
    let bytes = component("probes/good");
    let error = engine_without_compiler().load(&bytes, &cache).await.err().unwrap();
    assert_eq!(error.code(), "compile-failed");
    engine().load(&bytes, &cache).await.unwrap();
    assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
    let module = engine_without_compiler().load(&bytes, &cache).await.unwrap();
    assert!(matches!(module.run(attempt()).await, oncebox::plugin::Outcome::Applied { .. }));
}

#[tokio::test]
async fn the_most_instances_that_the_configuration_takes_can_be_reserved() {
    let dir = TempDir::new().unwrap();
    let most = oncebox::plugin::EngineLimits { instances_max: 10_000, ..ENGINE_LIMITS };
    let engine = Engine::with_compiler(&most, compiler()).unwrap();
    let module = engine.load(&component("probes/good"), dir.path()).await.unwrap();
    assert!(matches!(module.run(attempt()).await, oncebox::plugin::Outcome::Applied { .. }));
}

/// Both wait for one compilation, and the second finds its entry.
#[tokio::test]
async fn two_loads_of_one_module_at_a_time_compile_it_once() {
    let dir = TempDir::new().unwrap();
    let counter = dir.path().join("compilations");
    let script = format!("echo >> {}; exec {}", counter.display(), env!("CARGO_BIN_EXE_compile-child"));
    let counting = oncebox::plugin::Compiler::new("/bin/sh", ["-c", script.as_str()]);
    let engine = Engine::with_compiler(&ENGINE_LIMITS, counting).unwrap();
    let (bytes, cache) = (component("probes/good"), dir.path().join("modules"));
    let (one, other) = tokio::join!(engine.load(&bytes, &cache), engine.load(&bytes, &cache));
    assert_eq!(one.unwrap().digest(), other.unwrap().digest());
    assert_eq!(fs::read_to_string(counter).unwrap(), "\n");
}

#[tokio::test]
async fn a_corrupt_cache_entry_is_removed_and_made_again() {
    let dir = TempDir::new().unwrap();
    let bytes = component("probes/good");
    engine().load(&bytes, dir.path()).await.unwrap();
    let [entry] = entries(dir.path()).try_into().unwrap();
    let whole = fs::read(&entry).unwrap();

    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    for broken in [flipped, whole[..middle].to_vec(), Vec::new()] {
        fs::write(&entry, &broken).unwrap();
        let error = engine_without_compiler().load(&bytes, dir.path()).await.err().unwrap();
        assert_eq!(error.code(), "compile-failed", "a broken entry was believed");
        assert_eq!(entries(dir.path()), [] as [&Path; 0], "a broken entry stayed");
        engine().load(&bytes, dir.path()).await.unwrap();
        engine_without_compiler().load(&bytes, dir.path()).await.unwrap();
    }
}

#[tokio::test]
async fn an_entry_cannot_pass_for_another_modules() {
    let dir = TempDir::new().unwrap();
    engine().load(&component("probes/good"), dir.path()).await.unwrap();
    let [good] = entries(dir.path()).try_into().unwrap();
    let native = fs::read(&good).unwrap();
    engine().load(&component("probes/echo"), dir.path()).await.unwrap();
    let echo = entries(dir.path()).into_iter().find(|path| *path != good).unwrap();
    fs::write(&echo, native).unwrap();
    let error = engine_without_compiler().load(&component("probes/echo"), dir.path()).await.err().unwrap();
    assert_eq!(error.code(), "compile-failed");
}

#[tokio::test]
async fn a_cache_that_cannot_be_written_costs_only_time() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("in-the-way");
    fs::write(&file, "no folder").unwrap();
    let engine = Engine::with_compiler(&ENGINE_LIMITS, compiler()).unwrap();
    let module = engine.load(&component("probes/good"), &file).await.unwrap();
    assert!(matches!(module.run(attempt()).await, oncebox::plugin::Outcome::Applied { .. }));
}
