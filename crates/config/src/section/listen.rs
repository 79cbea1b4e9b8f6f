//! The address at which the gate listens, and the names of its host. Opens no listener.

mod diff;
pub(crate) mod file;
pub(crate) mod resolve;

use crate::diff::Change;
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::section::Section;

/// The listener: `listen`, `allowed_hosts`, `behind_proxy`.
pub(crate) struct ListenSection;

impl Section for ListenSection {
    type Form = file::ListenForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        config.listen = form.listen.as_ref().and_then(|listen| reading.listen(listen)).unwrap_or(config.listen);
        config.allowed_hosts = reading.allowed_hosts(&form.allowed_hosts);
        config.behind_proxy = form.behind_proxy.as_ref().is_some_and(|behind| *behind.get());
    }

    fn check(&self, form: &Self::Form, config: &Config, reading: &mut FileReading<'_>) {
        reading.open_listen(form, config);
        reading.open_proxy(form, config);
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        diff::changes(old, new)
    }
}
