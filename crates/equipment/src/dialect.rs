//! The dialect of a device: built in, in a file, or in a section `[dialect.NAME]` of the configuration. Knows no rule of any dialect.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use config::Flaw;
use config::file::At;
use config::reading::FileReading;
use net_proto::dialect::Dialect;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::settings::DeviceSettings;

/// Begin of the name of a dialect in a file.
const FILE: &str = "file:";

/// A dialect of a command line: a whole one, or what is added to one that is built in (`extends`).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct DialectForm(BTreeMap<String, DialectValue>);

/// Part of a dialect, which the dialect itself judges.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct DialectValue(Value);

impl JsonSchema for DialectValue {
    fn schema_name() -> Cow<'static, str> {
        "DialectValue".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let inner = generator.subschema_for::<Self>();
        json_schema!({ "description": "Part of a dialect: docs/devices.md says what a dialect holds.", "additionalProperties": inner, "items": inner })
    }
}

impl DialectForm {
    /// The table, once it is known to be a dialect.
    ///
    /// # Errors
    /// The reason for which the table is no dialect.
    pub(crate) fn checked(&self, name: &str) -> Result<Value, String> {
        if Dialect::NAMES.contains(&name) {
            return Err(format!("the dialect `{name}` is built in: give this one another name"));
        }
        let table: Map<String, Value> = self.0.iter().map(|(key, value)| (key.clone(), value.0.clone())).collect();
        let table = Value::Object(table);
        Dialect::from_user(name, table.clone()).map_err(|error| error.to_string())?;
        Ok(table)
    }
}

/// Brings the dialect that a device names to its settings, and refuses one that can't be used.
pub(crate) fn choose(name: &At<String>, settings: &mut DeviceSettings, tables: &BTreeMap<String, Value>, reading: &mut FileReading<'_>) {
    let text = name.get().as_str();
    if Dialect::NAMES.contains(&text) {
        return;
    }
    let advice = "write frr, ios, junos or vrp, or add a section [dialect.NAME]";
    if let Some(path) = text.strip_prefix(FILE) {
        let flaw = if path.starts_with('/') {
            settings.open_dialect().err().map(|why| Flaw::new(name.span(), why).help("docs/devices.md says what a dialect holds"))
        } else {
            Some(Flaw::new(name.span(), "the path of a dialect begins with `/`").help("for example file:/etc/banyan/dialect.toml"))
        };
        flaw.into_iter().for_each(|flaw| reading.refuse(flaw));
    } else if reading.known_beside(&Dialect::NAMES, "dialect", name, advice) {
        settings.dialect_table = tables.get(text).cloned();
    }
}

impl DeviceSettings {
    /// The dialect of the device.
    ///
    /// # Errors
    /// The reason for which the file or table of a user is no dialect.
    pub fn open_dialect(&self) -> Result<Arc<Dialect>, String> {
        if let Some(dialect) = Dialect::named(&self.dialect) {
            return Ok(dialect);
        }
        let made = match (&self.dialect_table, self.dialect.strip_prefix(FILE)) {
            (Some(table), _) => Dialect::from_user(&self.dialect, table.clone()),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(path).map_err(|error| format!("the dialect in {path} can't be read: {error}"))?;
                let name = Path::new(path).file_stem().map_or_else(|| path.into(), |stem| stem.to_string_lossy());
                return Dialect::from_user_file(&name, &text).map(Arc::new).map_err(|error| format!("{path}: {error}"));
            }
            (None, None) => return Err(format!("there is no dialect `{}`", self.dialect)),
        };
        made.map(Arc::new).map_err(|error| error.to_string())
    }
}
