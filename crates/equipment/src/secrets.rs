//! Secrets of a device: as references in the configuration, as variables for the server process, and as values there. Shows none.

use std::collections::BTreeMap;
use std::fmt;

use banyan_model::Segment;
use config::resolved::{Config, Transport};
use config::secret::{SecretError, SecretRef, Sources};

/// Keys of `[device.NAME]` that hold secrets, each with the variable for the server process of the device.
const VARIABLES: [(&str, &str); 6] = [
    ("password", "BANYAN_DEVICE_PASSWORD"),
    ("privacy_password", "BANYAN_DEVICE_PRIVACY_PASSWORD"),
    ("community", "BANYAN_DEVICE_COMMUNITY"),
    ("write_password", "BANYAN_DEVICE_WRITE_PASSWORD"),
    ("write_privacy_password", "BANYAN_DEVICE_WRITE_PRIVACY_PASSWORD"),
    ("write_community", "BANYAN_DEVICE_WRITE_COMMUNITY"),
];

/// Secrets of a device, by the key of the configuration.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DeviceSecrets(BTreeMap<&'static str, String>);

impl fmt::Debug for DeviceSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl DeviceSecrets {
    /// Secrets that another process handed over in variables.
    pub fn handed_over(read: impl Fn(&str) -> Option<String>) -> Self {
        Self(VARIABLES.into_iter().filter_map(|(key, variable)| Some((key, read(variable)?))).collect())
    }

    /// Secrets of a device of the configuration.
    ///
    /// # Errors
    /// A reference leads to no secret.
    pub fn resolve(config: &Config, name: &str, sources: &dyn Sources) -> Result<Self, SecretError> {
        let mount = Segment::new(name).ok().and_then(|segment| config.mounts.get(&segment));
        let Some(Transport::Stdio(process)) = mount.map(|mount| &mount.transport) else { return Ok(Self::default()) };
        let given = VARIABLES.into_iter().filter_map(|(key, variable)| Some((key, process.env.get(variable)?)));
        given.map(|(key, reference)| Ok((key, reference.resolve(sources)?.expose().to_owned()))).collect::<Result<_, _>>().map(Self)
    }

    /// The secret of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The same secrets with the one for changes in the place of the one for reads.
    #[must_use]
    pub fn writing(&self) -> Self {
        let mut all = self.0.clone();
        all.remove("password");
        let password = all.remove("write_password").map(|password| ("password", password));
        all.extend(password);
        Self(all)
    }

    /// Variables for another process.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        VARIABLES.iter().filter_map(|(key, variable)| Some((*variable, self.get(key)?)))
    }

    /// All values, for a redactor.
    pub fn values(&self) -> Vec<&str> {
        self.0.values().map(String::as_str).collect()
    }
}

/// Variables with references for the server process of a device.
pub(crate) fn variables(given: impl IntoIterator<Item = (&'static str, SecretRef)>) -> BTreeMap<String, SecretRef> {
    let variable = |key: &str| VARIABLES.iter().find(|(known, _)| *known == key).map(|(_, variable)| (*variable).to_owned());
    given.into_iter().filter_map(|(key, reference)| Some((variable(key)?, reference))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_12_the_login_for_changes_has_its_own_secret() {
        let of = |given: &[(&str, &str)]| {
            DeviceSecrets::handed_over(|variable| given.iter().find(|(name, _)| *name == variable).map(|(_, value)| (*value).to_owned()))
        };
        let both = of(&[("BANYAN_DEVICE_PASSWORD", "reads"), ("BANYAN_DEVICE_WRITE_PASSWORD", "changes")]);
        assert_eq!((both.get("password"), both.writing().get("password")), (Some("reads"), Some("changes")));
        assert_eq!(of(&[("BANYAN_DEVICE_PASSWORD", "reads")]).writing().get("password"), None, "a key is in its place");
    }
}
