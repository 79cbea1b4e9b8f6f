//! The configuration of a gate: `banyan.toml`, from text to checked values, and changes of the file over time.
//!
//! Each section of the file stands in a folder below `section`, behind one trait; other crates hand in more of them ([`Sections::with`]).
//! The crate does not act on a configuration: it starts no server and opens no listener.

pub mod diff;
pub mod file;
mod problem;
mod pruned;
pub mod reading;
pub mod reload;
pub mod resolved;
mod revoked;
pub mod rules;
mod schema;
pub mod secret;
pub mod section;
pub mod sections;
mod shape;
pub mod snippet;
pub mod suggest;
mod units;
mod values;
pub mod watch;

use std::path::Path;

pub use problem::{ConfigError, Flaw, Problem};
pub use revoked::{RefusedFile, without_revoked};
pub use section::Section;
pub use section::listen::resolve::{OpenListen, check_listen, exposed};
pub use sections::Sections;
pub use units::hex_digest;
pub use values::Values;

/// Reads the configuration file at `path` with the sections of this crate alone.
pub fn load(path: &Path, sources: &dyn secret::Sources) -> Result<resolved::Config, ConfigError> {
    Sections::default().load(path, sources)
}

/// Reads a configuration from `text` with the sections of this crate alone; `path` stands in errors, and relative paths start beside it.
pub fn parse(text: &str, path: &Path, sources: &dyn secret::Sources) -> Result<resolved::Config, ConfigError> {
    Sections::default().parse(text, path, sources)
}

/// Finds what a good configuration leaves to the word of others, each a line for people.
pub fn notices(config: &resolved::Config) -> Vec<String> {
    config.sections.notices(config)
}

/// Reads a length of time in the spelling of the configuration: `15m`, `1h30m`, `7d`.
pub fn age(text: &str) -> Option<std::time::Duration> {
    units::duration(text)
}

/// Checks whether a variable, header or key of this name usually holds a secret.
pub fn looks_secret(name: &str) -> bool {
    const PARTS: [&str; 9] = ["token", "secret", "passwd", "password", "passphrase", "credential", "authorization", "cookie", "bearer"];
    const WORDS: [&str; 4] = ["pat", "pwd", "dsn", "auth"];
    let name = name.trim().to_ascii_lowercase();
    let plural_of_a_count = name.ends_with("tokens");
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    (!plural_of_a_count && PARTS.iter().any(|part| name.contains(part))) || words.any(|word| word.ends_with("key") || WORDS.contains(&word))
}

/// Checks whether `glob` stands for a name; `*` stands for any text.
pub fn matches(glob: &str, name: &str) -> bool {
    mcp_proto::glob::Glob::new(glob).matches(name)
}

/// Checks whether the value at a place of `banyan.toml` may hold a secret.
fn is_secret_path<'a>(mut path: impl Iterator<Item = &'a str>) -> bool {
    let mut of_holder = false;
    path.any(|key| {
        of_holder |= matches!(key, "parent" | "participant");
        matches!(key, "args" | "authority_proof" | "client_secret" | "env" | "headers" | "secret" | "sha256")
            || (of_holder && key == "token")
    })
}

/// Replaces `${env:NAME}` in an address. Other references are refused, because addresses are shown.
pub fn address(text: &str, sources: &dyn secret::Sources) -> Result<String, String> {
    use secret::Piece;
    let reference = secret::SecretRef::parse(text).map_err(|error| error.to_string())?;
    if reference.pieces().iter().any(|piece| matches!(piece, Piece::File(_) | Piece::Keyring(_))) {
        return Err("an address takes ${env:NAME} only, not secrets from files or the keyring".into());
    }
    let address = reference.resolve(sources).map_err(|error| error.to_string())?;
    Ok(address.expose().to_owned())
}

/// Checks whether Banyan itself writes a header on every request to a server.
pub fn is_own_header(name: &str) -> bool {
    const OWN: [&str; 11] = [
        "accept",
        "connection",
        "content-length",
        "content-type",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
        "te",
        "transfer-encoding",
    ];
    OWN.contains(&name.to_ascii_lowercase().as_str())
}
