//! Notices of good configurations. Refuses nothing.

use std::path::Path;

use crate::notices;
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
