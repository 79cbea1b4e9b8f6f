//! Lengths of files. Functions, parameters and complexity are clippy's work (`clippy.toml`), and only the settings of clippy are checked
//! here.

use crate::tree::{read, sources};

const PRODUCTION_LINES: usize = 500;
const TEST_FILE_LINES: usize = 1000;
const MODEL_LINES: usize = 1000;

#[test]
fn no_file_has_more_than_500_production_lines() {
    let mut long = Vec::new();
    for file in sources(&[".rs", ".ts", ".tsx", ".py", ".sh"]) {
        let (lines, most) = if file.is_test() {
            (file.text.lines().count(), TEST_FILE_LINES)
        } else {
            (file.production().lines().count(), PRODUCTION_LINES)
        };
        if lines > most {
            long.push(format!("{}: {lines} lines, {most} are allowed", file.path));
        }
        if file.text.lines().count() > PRODUCTION_LINES + TEST_FILE_LINES {
            long.push(format!("{}: move its tests into a file of their own", file.path));
        }
    }
    assert!(long.is_empty(), "a noun is missing (name it, do not cut at the limit):\n{}", long.join("\n"));
}

#[test]
fn the_model_stays_small() {
    let lines: usize =
        sources(&[".rs"]).iter().filter(|f| f.path.starts_with("crates/model/src/")).map(|f| f.production().lines().count()).sum();
    assert!(lines <= MODEL_LINES, "crates/model has {lines} lines: words only, behaviour lives higher");
}

#[test]
fn clippy_holds_the_function_budgets_everywhere() {
    let root: toml::Table = read("clippy.toml").parse().expect("clippy.toml is TOML");
    let budgets = [("too-many-lines-threshold", 80), ("too-many-arguments-threshold", 6), ("cognitive-complexity-threshold", 15)];
    for file in sources(&["clippy.toml"]) {
        let table: toml::Table = file.text.parse().expect("clippy.toml is TOML");
        for (key, most) in budgets {
            assert_eq!(table.get(key).and_then(toml::Value::as_integer), Some(most), "{} says nothing of {key}", file.path);
        }
        assert_eq!(table.get("msrv"), root.get("msrv"), "{}", file.path);
    }
    let manifest: toml::Table = read("Cargo.toml").parse().expect("Cargo.toml is TOML");
    let lints = &manifest["workspace"]["lints"]["clippy"];
    for lint in ["too_many_lines", "too_many_arguments", "cognitive_complexity"] {
        assert_eq!(lints.get(lint).and_then(toml::Value::as_str), Some("warn"), "{lint}");
    }
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for file in sources(&["Cargo.toml"]).iter().filter(|f| f.path.starts_with("crates/")) {
        let manifest: toml::Table = file.text.parse().expect("Cargo.toml is TOML");
        let inherited = manifest.get("lints").and_then(|l| l.get("workspace")).and_then(toml::Value::as_bool);
        assert_eq!(inherited, Some(true), "{}", file.path);
    }
}
