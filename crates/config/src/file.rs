//! Values of `banyan.toml` with their places, for the forms of sections. Checks no value.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use toml::Spanned;

pub use crate::section::audit::file::RecordedArguments;

/// A value with its place in the file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(transparent)]
#[serde(bound = "T: Deserialize<'de>")]
pub struct At<T>(Spanned<T>);

impl<T> At<T> {
    /// The byte range of the value in the file.
    pub fn span(&self) -> std::ops::Range<usize> {
        self.0.span()
    }

    /// The value.
    pub fn get(&self) -> &T {
        self.0.get_ref()
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
