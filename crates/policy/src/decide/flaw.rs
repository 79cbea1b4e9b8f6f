//! Faults in a text of policies, with their places. Does not print them.

use std::ops::Range;

/// A fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flaw {
    /// Bytes of the text.
    pub span: Range<usize>,
    pub message: String,
    /// A remedy.
    pub help: Option<String>,
}

impl Flaw {
    pub(super) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None }
    }

    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Converts a diagnostic of the library; `otherwise` is the place where the diagnostic has none.
    pub(super) fn from_diagnostic(diagnostic: &dyn miette::Diagnostic, otherwise: Range<usize>) -> Self {
        let label = diagnostic.labels().and_then(|mut labels| labels.next());
        let span = label.as_ref().map_or(otherwise, |label| label.offset()..label.offset() + label.len());
        let help = diagnostic.help().map(|help| help.to_string());
        // The message names what was found, the label what was expected.
        let found = diagnostic.to_string();
        // The library counts policies; people see the line.
        let found =
            found.split_once("`, ").filter(|(head, _)| head.starts_with("for policy `")).map_or(found.clone(), |(_, rest)| rest.to_owned());
        let expected = label.and_then(|label| label.label().map(str::to_owned)).filter(|expected| !found.contains(expected.as_str()));
        let message = expected.map_or_else(|| found.clone(), |expected| format!("{found}: {expected}"));
        Self { span, message, help }
    }
}
