//! A section of another crate, handed in: its form, its resolved form, the difference of a reload, and flaws with their places. Tests no
//! section of this crate.

use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::diff::{self, Change, diff, differing};
use crate::file::At;
use crate::reading::FileReading;
use crate::reload::{Reload, reload};
use crate::resolved::Config;
use crate::secret::SystemSources;
use crate::{ConfigError, Flaw, Problem, RefusedFile, Section, Sections};

/// Lamps, by the name of their room.
struct LampSection;

/// The key of lamps.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct LampForm {
    /// A lamp above each door.
    lamp: Option<Lamp>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Lamp {
    /// Name of the mount below the lamp.
    #[schemars(example = &"github")]
    mount: At<String>,
    /// Time for which the lamp stays lit. Default: `1m`.
    lit: Option<At<String>>,
    /// Colour of the light.
    colour: Option<Colour>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Amber,
    Green,
}

#[derive(Clone, Debug, PartialEq)]
struct Lit {
    mount: String,
    time: Duration,
    colour: Colour,
}

impl Section for LampSection {
    type Form = LampForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        let Some(lamp) = &form.lamp else { return };
        reading.known("mount", &lamp.mount, &format!("add a section [mount.{}]", lamp.mount.get()));
        let time = reading.duration(lamp.lit.as_ref()).unwrap_or(Duration::from_secs(60));
        config.values.set(Lit { mount: lamp.mount.get().clone(), time, colour: lamp.colour.unwrap_or(Colour::Amber) });
    }

    fn check(&self, form: &Self::Form, config: &Config, reading: &mut FileReading<'_>) {
        if let (Some(lamp), true) = (&form.lamp, config.tokens.is_empty()) {
            reading.refuse(Flaw::new(lamp.mount.span(), "a lamp needs a token").help("`banyan token add NAME`"));
        }
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        let fields = |old: &Lit, new: &Lit| {
            let Lit { mount, time, colour } = old;
            differing([("mount", *mount != new.mount), ("lit", *time != new.time), ("colour", *colour != new.colour)])
        };
        let change = diff::optional("lamp", old.values.get(), new.values.get(), fields);
        change.map(|change| change.but_for(&["colour"], "colour holds for lamps lit from now on")).into_iter().collect()
    }

    fn notices(&self, config: &Config) -> Vec<String> {
        config.values.get::<Lit>().map(|lit| format!("[lamp]: {} is lit", lit.mount)).into_iter().collect()
    }

    fn revoke(&self, refused: &RefusedFile<'_>, left: &mut Config) {
        if let (RefusedFile::Table(file), Some(lit)) = (refused, left.values.get::<Lit>())
            && file.get("lamp").is_none()
        {
            let dark = Lit { time: Duration::ZERO, ..lit.clone() };
            left.values.set(dark);
        }
    }
}

/// Sixty-four digits, as of a hash.
const BASE: &str = "[[token]]\nname = \"ci\"\nsha256 = \"0000000000000000000000000000000000000000000000000000000000000000\"\n\
                    [mount.github]\ncommand = \"x\"\n";

fn sections() -> Sections {
    Sections::default().with(LampSection)
}

fn read(lamp: &str) -> Config {
    sections().parse(&format!("{BASE}{lamp}"), Path::new("banyan.toml"), &SystemSources).unwrap()
}

fn problems(text: &str) -> Vec<Problem> {
    match sections().parse(text, Path::new("banyan.toml"), &SystemSources) {
        Err(ConfigError::Invalid { problems, .. }) => problems,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_handed_in_section_has_a_resolved_form() {
    let config = read("[lamp]\nmount = \"github\"\nlit = \"1h30m\"\ncolour = \"green\"\n");
    let lit = Lit { mount: "github".into(), time: Duration::from_secs(5400), colour: Colour::Green };
    assert_eq!(config.values.get::<Lit>(), Some(&lit));
    assert_eq!(config.mounts.len(), 1, "the other sections are read as ever");
    assert_eq!(crate::notices(&config), ["[lamp]: github is lit"]);
    assert_eq!(read("").values.get::<Lit>(), None);
}

#[test]
fn a_reload_names_keys_of_a_handed_in_section() {
    let lamp = |keys: &str| read(&format!("[lamp]\nmount = \"github\"\n{keys}"));
    let lines = |old: &Config, new: &Config| diff(old, new).iter().map(Change::to_string).collect::<Vec<_>>();
    assert_eq!(lines(&read(""), &lamp("")), ["+ lamp"]);
    assert_eq!(lines(&lamp(""), &lamp("lit = \"2m\"")), ["~ lamp: lit"]);
    assert_eq!(lines(&lamp(""), &lamp("colour = \"green\"")), ["~ lamp: colour (colour holds for lamps lit from now on)"]);
    assert_eq!(lines(&lamp(""), &read("")), ["- lamp"]);
    assert_eq!(lines(&lamp(""), &lamp("lit = \"60s\"")), Vec::<String>::new());
    assert_eq!(lines(&Config::default(), &lamp("")).last().unwrap(), "+ lamp", "also from a configuration without the section");
}

#[test]
fn a_gate_reads_its_file_again_with_all_sections() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("banyan.toml");
    std::fs::write(&path, format!("{BASE}[lamp]\nmount = \"github\"\nlit = \"2m\"\n")).unwrap();
    let Reload::Applied { config, changes } = reload(&read("[lamp]\nmount = \"github\""), &path, &SystemSources) else { panic!() };
    assert_eq!(changes.iter().map(Change::to_string).collect::<Vec<_>>(), ["~ lamp: lit"]);
    assert_eq!(config.values.get::<Lit>().unwrap().time, Duration::from_secs(120));
    let left = crate::without_revoked(&config, &format!("bogus = 1\n{BASE}")).unwrap();
    assert_eq!(left.values.get::<Lit>().unwrap().time, Duration::ZERO, "the refused file has no lamp any more");
}

#[test]
fn flaws_of_handed_in_sections_have_line_and_column() {
    let place = |text: &str| problems(text).into_iter().map(|p| (p.line, p.column, p.message)).collect::<Vec<_>>();
    let found = place(&format!("{BASE}[lamp]\nmount = \"github\"\nlit = \"soon\"\n"));
    assert_eq!(found, [(8, 7, "\"soon\" is not a duration of 1ms to 365d".to_owned())]);
    assert_eq!(place("[mount.a]\ncommand = \"x\"\n[lamp]\nmount = \"a\"\n"), [(4, 9, "a lamp needs a token".to_owned())]);
    assert_eq!(place(&format!("{BASE}[lamp]\n")), [(6, 1, "`lamp` needs `mount`".to_owned())]);
    let near = problems(&format!("{BASE}[lamp]\nmount = \"gitub\"\n"));
    assert_eq!((near[0].line, near[0].column, near[0].help.as_deref()), (7, 9, Some("did you mean `github`?")));
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest() {
    let help = |text: &str| problems(text)[0].help.clone().unwrap();
    assert_eq!(help(&format!("{BASE}[lampp]\nmount = \"github\"\n")), "did you mean `lamp`?");
    assert_eq!(help(&format!("{BASE}[lamp]\nmount = \"github\"\ncolor = \"green\"\n")), "did you mean `colour`?");
    assert_eq!(help(&format!("{BASE}[lamp]\nmount = \"github\"\ncolour = \"amb\"\n")), "did you mean `amber`?");
    let alone = crate::parse(&format!("{BASE}[lamp]\nmount = \"github\"\n"), Path::new("banyan.toml"), &SystemSources).unwrap_err();
    assert!(alone.to_string().contains("unknown key `lamp` at the top"), "{alone}");
}

#[test]
fn the_schema_lists_handed_in_sections() {
    let sections = sections();
    let schema = sections.schema();
    assert_eq!(schema["properties"]["lamp"]["description"], "A lamp above each door.");
    assert_eq!(schema["$defs"]["Lamp"]["required"], serde_json::json!(["mount"]));
    assert!(Sections::default().schema()["properties"].get("lamp").is_none());
}

#[test]
fn two_sections_with_one_key_are_found() {
    assert_eq!(sections().claimed_twice(), Vec::<&str>::new());
    assert_eq!(sections().with(LampSection).claimed_twice(), ["lamp"]);
}
