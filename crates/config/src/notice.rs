//! Notices for whoever runs the gate about a configuration that can be used: what it leaves to the word of others. Refuses nothing.

use policy::approval::Mode;

use super::resolved::Config;

/// Finds what there is to say of `config`, each a line for people.
pub fn notices(config: &Config) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(gate) = &config.gate {
        let believes = |mode: &Mode| matches!(mode, Mode::Irreversible | Mode::Mutable);
        let modes = std::iter::once(&gate.mode).chain(gate.mounts.values());
        if modes.into_iter().any(believes) {
            found.push(
                "[gate]: calls go unasked where a server says that its tool only reads, or can be undone: `banyan tools` marks them; \
                 mode = \"unlisted\" believes this file alone"
                    .to_owned(),
            );
        }
    }
    if let Some(registry) = &config.registry {
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
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::secret::SystemSources;

    fn of(toml: &str) -> Vec<String> {
        notices(&crate::parse(toml, Path::new("banyan.toml"), &SystemSources).unwrap())
    }

    #[test]
    fn m12_it_is_said_where_calls_go_unasked_on_a_servers_own_word() {
        assert!(of("[gate]\nmode = \"mutable\"\n")[0].contains("unlisted"));
        assert!(of("[gate]\nmode = \"unlisted\"\nmounts = { a = \"irreversible\" }\n")[0].contains("banyan tools"));
        assert!(of("[gate]\nmode = \"unlisted\"\n").is_empty() && of("").is_empty());
    }

    #[test]
    fn m16_it_is_said_who_may_register_where_nobody_is_named_and_which_hosts_are_no_networks() {
        assert!(of("[registry]\n")[0].contains("principals"));
        assert!(of("[registry]\nprincipals = [\"a\"]\nhosts = [\"10.1.*\"]\n")[0].contains("`10.1.*`"));
        assert!(of("[registry]\nprincipals = [\"a\"]\nhosts = [\"10.1.0.0/16\", \"*.plant.example\"]\n").is_empty());
    }
}
