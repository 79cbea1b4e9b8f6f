//! The list of sections, and the way of a file through them: from text to a [`Config`]. Knows no section in particular.

use std::any::{Any, TypeId};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};

use schemars::{Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use crate::diff::Change;
use crate::problem::{ConfigError, Flaw, invalid};
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::revoked::RefusedFile;
use crate::secret::Sources;
use crate::section::Section;
use crate::section::{
    audit::AuditSection, gate::GateSection, join::JoinSection, limits::LimitsSection, listen::ListenSection, mount::MountSection,
    pins::PinsSection, policy::PolicySection, profile::ProfileSection, registry::RegistrySection, room::RoomSection,
    telemetry::TelemetrySection, token::TokenSection, trust::TrustSection,
};
use crate::snippet::Shown;
use crate::{pruned, schema, shape};

/// Mistakes of the form beside which others are looked for, and others told: each is held against each.
const MOST_AT_ONCE: usize = 32;

/// The sections of a file: first the sections of this crate, then handed-in sections.
#[derive(Clone)]
pub struct Sections(Arc<List>);

struct List {
    all: Vec<Arc<dyn AnySection>>,
    /// Made once: each file that is read is checked against the schema.
    described: OnceLock<Described>,
}

struct Described {
    schema: Value,
    /// Keys at the top of the file, for each section.
    keys: Vec<Vec<String>>,
}

/// A [`Section`] of an unknown form.
trait AnySection: Send + Sync {
    fn id(&self) -> TypeId;
    fn mounts(&self) -> Option<&'static str>;
    fn schema(&self, generator: &mut SchemaGenerator) -> Schema;
    fn read(&self, table: Spanned<DeTable<'_>>) -> Result<Box<dyn Any>, toml::de::Error>;
    fn resolve(&self, form: &dyn Any, reading: &mut FileReading<'_>, config: &mut Config);
    fn check(&self, form: &dyn Any, config: &Config, reading: &mut FileReading<'_>);
    fn compare(&self, old: &Config, new: &Config) -> Vec<Change>;
    fn notices(&self, config: &Config) -> Vec<String>;
    fn revoke(&self, refused: &RefusedFile<'_>, left: &mut Config);
}

impl<S: Section> AnySection for S {
    fn id(&self) -> TypeId {
        TypeId::of::<S>()
    }

    fn mounts(&self) -> Option<&'static str> {
        S::MOUNTS
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        <S::Form as schemars::JsonSchema>::json_schema(generator)
    }

    fn read(&self, table: Spanned<DeTable<'_>>) -> Result<Box<dyn Any>, toml::de::Error> {
        S::Form::deserialize(Deserializer::from(table)).map(|form| Box::new(form) as Box<dyn Any>)
    }

    fn resolve(&self, form: &dyn Any, reading: &mut FileReading<'_>, config: &mut Config) {
        form.downcast_ref().into_iter().for_each(|form| Section::resolve(self, form, reading, config));
    }

    fn check(&self, form: &dyn Any, config: &Config, reading: &mut FileReading<'_>) {
        form.downcast_ref().into_iter().for_each(|form| Section::check(self, form, config, reading));
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        Section::compare(self, old, new)
    }

    fn notices(&self, config: &Config) -> Vec<String> {
        Section::notices(self, config)
    }

    fn revoke(&self, refused: &RefusedFile<'_>, left: &mut Config) {
        Section::revoke(self, refused, left);
    }
}

/// The sections of this crate, in the order of resolving, describing, and comparing.
static BUILT_IN: LazyLock<Sections> = LazyLock::new(|| {
    Sections::listed(vec![
        Arc::new(ListenSection),
        Arc::new(TrustSection),
        Arc::new(TokenSection),
        Arc::new(PolicySection),
        Arc::new(LimitsSection),
        Arc::new(MountSection),
        Arc::new(GateSection),
        Arc::new(PinsSection),
        Arc::new(RegistrySection),
        Arc::new(RoomSection),
        Arc::new(JoinSection),
        Arc::new(ProfileSection),
        Arc::new(TelemetrySection),
        Arc::new(AuditSection),
    ])
});

/// The sections of this crate.
impl Default for Sections {
    fn default() -> Self {
        BUILT_IN.clone()
    }
}

impl Sections {
    /// Adds a section. Of two sections with the same key the first reads the key.
    #[must_use]
    pub fn with(&self, section: impl Section) -> Self {
        let mut all = self.0.all.clone();
        all.push(Arc::new(section));
        Self::listed(all)
    }

    fn listed(all: Vec<Arc<dyn AnySection>>) -> Self {
        Self(Arc::new(List { all, described: OnceLock::new() }))
    }

    /// The JSON Schema of `banyan.toml`.
    pub fn schema(&self) -> &Value {
        &self.described().schema
    }

    fn described(&self) -> &Described {
        self.0.described.get_or_init(|| {
            let mut generator = SchemaGenerator::default();
            let forms: Vec<Schema> = self.0.all.iter().map(|section| section.schema(&mut generator)).collect();
            let keys = forms.iter().map(schema::keys).collect();
            Described { schema: schema::merged(forms, &mut generator), keys }
        })
    }

    /// Lists keys claimed by two sections: none, in a good list.
    pub fn claimed_twice(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = self.described().keys.iter().flatten().map(String::as_str).collect();
        keys.sort_unstable();
        keys.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
    }

    /// Lists the keys of sections that each mount a server.
    fn mounting(&self) -> Vec<&'static str> {
        self.0.all.iter().filter_map(|section| section.mounts()).collect()
    }

    /// Makes the configuration of an empty file.
    pub fn empty(&self) -> Config {
        Config { sections: self.clone(), ..Config::default() }
    }

    /// Reads the configuration file at `path`. References in addresses are looked up in the environment of `sources`.
    pub fn load(&self, path: &Path, sources: &dyn Sources) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        self.parse(&text, path, sources)
    }

    /// Reads a configuration from `text`; `path` stands in errors, and relative paths start beside it.
    pub fn parse(&self, text: &str, path: &Path, sources: &dyn Sources) -> Result<Config, ConfigError> {
        let refuse = |flaws| invalid(path, text, self.schema(), flaws);
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() && text.trim_start().starts_with('{') {
            let start = text.len() - text.trim_start().len();
            let flaw = Flaw { shown: Shown::Keys, ..Flaw::new(start..start + 1, "this is JSON, and not TOML") };
            let help =
                "`banyan import FILE --write` makes a banyan.toml of a client's file, and `banyan up --from FILE` serves the file as it is";
            return Err(refuse(vec![flaw.help(help)]));
        }
        if !errors.is_empty() {
            let end = text.trim_end().len();
            return Err(refuse(errors.iter().map(|error| syntax(error, end)).collect()));
        }
        let mut flaws = shape::flaws(&table, self.schema());
        if !flaws.is_empty() {
            flaws.extend(self.others(&table, &flaws, text, path, sources));
            return Err(refuse(flaws));
        }
        let forms = self.forms(&table).map_err(|error| refuse(vec![syntax(&error, text.trim_end().len())]))?;
        let mut reading = FileReading::new(beside(path), table.get_ref(), sources, self.mounting());
        let config = self.resolve(&forms, &mut reading);
        match reading {
            FileReading { flaws, .. } if !flaws.is_empty() => Err(refuse(flaws)),
            FileReading { elsewhere: Some(error), .. } => Err(error),
            FileReading { .. } => Ok(config),
        }
    }

    /// Lists the mistakes beside those of the form, which are known: all are told at once.
    fn others(&self, table: &Spanned<DeTable<'_>>, known: &[Flaw], text: &str, path: &Path, sources: &dyn Sources) -> Vec<Flaw> {
        if known.len() > MOST_AT_ONCE {
            return Vec::new();
        }
        let table = pruned::without(table, known);
        let Ok(forms) = self.forms(&table) else { return Vec::new() };
        let mut reading = FileReading::new(beside(path), table.get_ref(), sources, self.mounting());
        self.resolve(&forms, &mut reading);
        let found = reading.flaws.into_iter().take(MOST_AT_ONCE);
        found.map(|found| Flaw { follows: pruned::may_follow(&found, known, text), ..found }).collect()
    }

    /// Cuts the file into the forms of its sections.
    fn forms(&self, table: &Spanned<DeTable<'_>>) -> Result<Vec<Box<dyn Any>>, toml::de::Error> {
        let mut rest = table.get_ref().clone();
        let sections = self.0.all.iter().zip(&self.described().keys);
        let forms = sections.map(|(section, keys)| {
            let own: DeTable<'_> = keys.iter().filter_map(|key| rest.remove_entry(key.as_str())).collect();
            section.read(Spanned::new(table.span(), own))
        });
        forms.collect()
    }

    fn resolve(&self, forms: &[Box<dyn Any>], reading: &mut FileReading<'_>) -> Config {
        let mut config = self.empty();
        for (section, form) in self.0.all.iter().zip(forms) {
            section.resolve(&**form, reading, &mut config);
        }
        for (section, form) in self.0.all.iter().zip(forms) {
            section.check(&**form, &config, reading);
        }
        config
    }

    /// Compares two configurations, in the order of the sections.
    pub(crate) fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        self.0.all.iter().flat_map(|section| section.compare(old, new)).collect()
    }

    pub(crate) fn notices(&self, config: &Config) -> Vec<String> {
        self.0.all.iter().flat_map(|section| section.notices(config)).collect()
    }

    pub(crate) fn revoke(&self, refused: &RefusedFile<'_>, left: &mut Config) {
        self.0.all.iter().for_each(|section| section.revoke(refused, left));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.all.len()
    }

    fn ids(&self) -> Vec<TypeId> {
        self.0.all.iter().map(|section| section.id()).collect()
    }
}

/// The directory of a file, from the root on.
fn beside(path: &Path) -> PathBuf {
    std::path::absolute(path).ok().and_then(|path| path.parent().map(Path::to_owned)).unwrap_or_default()
}

/// Lists of the same sections are equal.
impl PartialEq for Sections {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.ids() == other.ids()
    }
}

impl fmt::Debug for Sections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sections({})", self.0.all.len())
    }
}

/// Flaw that a mistake in the form is; `end` of the file is the place of one that has none.
fn syntax(error: &toml::de::Error, end: usize) -> Flaw {
    let span: Range<usize> = error.span().unwrap_or(end..end);
    let message = error.message();
    let flaw = Flaw { shown: Shown::Keys, ..Flaw::new(span, format!("this is not TOML: {message}")) };
    if message.starts_with("string values must be quoted") {
        flaw.help("put the text between quotes")
    } else if message.starts_with("duplicate key") {
        flaw.help("a section or key stands in the file once; give the second one another name")
    } else {
        flaw
    }
}

#[cfg(test)]
mod handed_in;
#[cfg(test)]
mod notices;
#[cfg(test)]
mod secrecy;
#[cfg(test)]
mod tests;
