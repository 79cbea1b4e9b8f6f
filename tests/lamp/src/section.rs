//! The section `[lamp.NAME]`: each mounts a lamp under that name. Lights none.

use std::collections::BTreeMap;
use std::sync::Arc;

use config::Section;
use config::diff::{Change, differing};
use config::file::At;
use config::reading::FileReading;
use config::resolved::{Config, FamilySettings, FamilyTransport, Mount, Transport};
use schemars::JsonSchema;
use serde::Deserialize;

/// Lamps on a bus: `[lamp.NAME]`.
pub struct LampSection;

/// The key of lamps.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LampForm {
    /// Lamps on a bus, by the name in front of their tools.
    lamp: BTreeMap<At<String>, Lamp>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Lamp {
    /// Line of the bus.
    #[schemars(example = &"hall-1")]
    line: String,
    /// Colour of the light. Default: `amber`.
    #[serde(default)]
    colour: Colour,
}

/// Colour of a light.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Colour {
    #[default]
    Amber,
    Green,
}

/// A lamp, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct LampSettings {
    pub line: String,
    pub colour: Colour,
}

impl FamilySettings for LampSettings {
    const FAMILY: &'static str = "lamp";

    fn description(&self) -> String {
        format!("a lamp on line {}", self.line)
    }

    fn differing(&self, old: &Self) -> Vec<&'static str> {
        differing([("line", self.line != old.line), ("colour", self.colour != old.colour)])
    }
}

impl Section for LampSection {
    type Form = LampForm;

    const MOUNTS: Option<&'static str> = Some("lamp");

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        for (name, lamp) in &form.lamp {
            let Some(segment) = reading.free_segment(name, "lamp", config) else { continue };
            let settings = LampSettings { line: lamp.line.clone(), colour: lamp.colour };
            let transport = Transport::Family(FamilyTransport::new(settings));
            config.mounts.insert(segment.clone(), Arc::new(Mount::new(segment, transport, "banyan.toml")));
        }
    }

    /// A changed lamp shows as a changed mount.
    fn compare(&self, _old: &Config, _new: &Config) -> Vec<Change> {
        Vec::new()
    }
}
