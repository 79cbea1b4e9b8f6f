//! Terms of registration. Registers nobody.

mod diff;
pub(crate) mod file;
pub(crate) mod hosts;
pub(crate) mod resolve;
pub(crate) mod resolved;

use crate::diff::Change;
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::section::Section;

/// Registration: `[registry]`.
pub(crate) struct RegistrySection;

impl Section for RegistrySection {
    type Form = file::RegistryForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        config.registry = form.registry.as_ref().map(|section| reading.registry(section));
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        diff::changes(old, new)
    }

    fn notices(&self, config: &Config) -> Vec<String> {
        let Some(registry) = &config.registry else { return Vec::new() };
        let mut found = Vec::new();
        if registry.principals.is_none() {
            found.push(
                "[registry]: only whoever proves an authority may register, by a certificate or a signed proof: name the others in \
             `principals`, for example [\"edge-*\"], or [\"local\"] for programs of this machine"
                    .to_owned(),
            );
        }
        let written = registry.hosts.written().map(|entry| {
        format!("[registry]: `{entry}` in `hosts` means addresses as they are written: write the network instead, for example \"10.1.0.0/16\"")
    });
        found.extend(written);
        if registry.trust_gates {
            found.push("[registry]: `trust_gates` trusts the definitions of whoever may register and says that it is a gate".to_owned());
        }
        found
    }
}
