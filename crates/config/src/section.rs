//! The sections of `banyan.toml`. All that concerns one stands in one folder: its form in the file, its resolved form, and the difference
//! between two of them. Does not know the sections that other crates hand in.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::diff::Change;
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::revoked::RefusedFile;

pub(crate) mod audit;
pub(crate) mod gate;
pub(crate) mod join;
pub(crate) mod limits;
pub(crate) mod listen;
pub(crate) mod mount;
pub(crate) mod pins;
pub(crate) mod policy;
pub(crate) mod profile;
pub(crate) mod registry;
pub(crate) mod room;
pub(crate) mod telemetry;
pub(crate) mod token;
pub(crate) mod trust;

/// Keys at the top of `banyan.toml` that belong together. Each crate of a family brings one, and
/// [`Sections::with`](crate::sections::Sections::with) hands it in.
pub trait Section: Send + Sync + 'static {
    /// The keys at the top of the file, as people write them. Every key is optional; the docs of the fields become descriptions in the
    /// JSON Schema.
    type Form: DeserializeOwned + JsonSchema + 'static;

    /// The key of sections `[KEY.NAME]` that each mount a server under that name; `None`: the section mounts none.
    const MOUNTS: Option<&'static str> = None;

    /// Checks `form` and puts the resolved values into `config`; those of a handed-in section go into
    /// [`Config::values`]. Flaws go to `reading`. Sections that stand before this one in the list are resolved already.
    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config);

    /// Checks `form` against the other sections, when all are resolved.
    fn check(&self, _form: &Self::Form, _config: &Config, _reading: &mut FileReading<'_>) {}

    /// Compares the section of two configurations.
    fn compare(&self, old: &Config, new: &Config) -> Vec<Change>;

    /// Finds what the section of a good configuration leaves to the word of others, each a line for people.
    fn notices(&self, _config: &Config) -> Vec<String> {
        Vec::new()
    }

    /// Takes the credentials out of `left` that the refused file has no more, or has otherwise.
    fn revoke(&self, _refused: &RefusedFile<'_>, _left: &mut Config) {}
}
