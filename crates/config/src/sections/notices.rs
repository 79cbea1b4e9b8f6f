//! Notices of good configurations. Refuses nothing.

use std::path::Path;

use crate::notices;
use crate::secret::SystemSources;

fn found_in(toml: &str) -> Vec<String> {
    notices(&crate::parse(toml, Path::new("banyan.toml"), &SystemSources).unwrap())
}

#[test]
fn m12_it_is_said_where_calls_go_unasked_on_a_servers_own_word() {
    assert!(found_in("[gate]\nmode = \"mutable\"\n")[0].contains("unlisted"));
    assert!(found_in("[gate]\nmode = \"unlisted\"\nmounts = { a = \"irreversible\" }\n")[0].contains("banyan tools"));
    assert!(found_in("[gate]\nmode = \"unlisted\"\n").is_empty() && found_in("").is_empty());
}

#[test]
fn m16_it_is_said_who_may_register_where_nobody_is_named_and_which_hosts_are_no_networks() {
    assert!(found_in("[registry]\n")[0].contains("principals"));
    assert!(found_in("[registry]\nprincipals = [\"a\"]\nhosts = [\"10.1.*\"]\n")[0].contains("`10.1.*`"));
    assert!(found_in("[registry]\nprincipals = [\"a\"]\nhosts = [\"10.1.0.0/16\", \"*.plant.example\"]\n").is_empty());
}
