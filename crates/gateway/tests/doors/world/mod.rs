//! A running gate and the clients before the door. Knows HTTP and the two eras as a client must, and nothing of the gate's inside.

pub(crate) mod cable;
mod client;
pub(crate) mod middle;
pub(crate) mod raw;
mod recorder;
pub(crate) mod registrant;
mod socket;
pub(crate) mod tap;
mod wire;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use config::{self, resolved::Config, secret::SystemSources};
use gateway::{Gateway, MountStatus};
use runtime::worker::Workers;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) use client::{Client, Era};
pub(crate) use recorder::Recorder;
pub(crate) use socket::{NotUpgraded, Socket};
pub(crate) use wire::{Reply, protect, send};

/// Longest time of a test.
const LONGEST: Duration = Duration::from_secs(60);
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/peers/conformance/fixture_server.py");

/// Runs a test within [`LONGEST`].
pub(crate) async fn bounded<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONGEST, test).await.expect("the test took too long")
}

/// Writes a table of `banyan.toml` that mounts the fixture over stdio.
pub(crate) fn fixture(name: &str, era: Era) -> String {
    fixture_with(name, era, &[])
}

/// Writes the fixture's table with further arguments.
pub(crate) fn fixture_with(name: &str, era: Era, more: &[&str]) -> String {
    let own = if era == Era::Initialize { "legacy" } else { "modern" };
    let mut args = vec![FIXTURE, "stdio", "--era", own];
    args.extend_from_slice(more);
    format!("[mount.{name}]\ncommand = \"python3\"\nargs = {args:?}\n")
}

/// Writes a `[[token]]` for the token `secret-of-NAME`.
pub(crate) fn token(name: &str) -> String {
    let digest: String = Sha256::digest(format!("secret-of-{name}")).iter().map(|b| format!("{b:02x}")).collect();
    format!("[[token]]\nname = \"{name}\"\nsha256 = \"{digest}\"\n")
}

/// A gate that serves on a free port of the loopback.
pub(crate) struct World {
    pub(crate) gateway: Gateway,
    pub(crate) addr: SocketAddr,
    stop: CancellationToken,
    pub(crate) state: tempfile::TempDir,
}

impl World {
    /// Starts the gate of `toml`, and waits until all mounts are settled.
    pub(crate) async fn start(toml: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), toml).await
    }

    /// Starts a gate on an existing state directory.
    pub(crate) async fn start_in(state: tempfile::TempDir, toml: &str) -> Self {
        Self::of_config(state, parse(toml)).await
    }

    /// Starts the gate of a configuration that no text of a file says.
    pub(crate) async fn of_config(state: tempfile::TempDir, config: Config) -> Self {
        let gateway = Gateway::start(config, state.path().to_owned());
        Self::serving(gateway, TcpListener::bind("127.0.0.1:0").await.unwrap(), state).await
    }

    /// Starts another gate with the same state directory.
    pub(crate) async fn beside(&self, toml: &str) -> Self {
        let gateway = Gateway::start(parse(toml), self.state.path().to_owned());
        Self::serving(gateway, TcpListener::bind("127.0.0.1:0").await.unwrap(), tempfile::tempdir().unwrap()).await
    }

    /// Starts a gate at a known address.
    pub(crate) async fn start_on(toml: &str, addr: SocketAddr) -> Self {
        let state = tempfile::tempdir().unwrap();
        let gateway = Gateway::start(parse(toml), state.path().to_owned());
        let listener = eventually(async || TcpListener::bind(addr).await.ok()).await;
        Self::serving(gateway, listener, state).await
    }

    /// Starts a gate that registers with the parents in `toml`.
    pub(crate) async fn member(toml: &str) -> Self {
        Self::member_in(tempfile::tempdir().unwrap(), toml, TcpListener::bind("127.0.0.1:0").await.unwrap()).await
    }

    /// Starts a registering gate on an existing state directory, at an address known to others.
    pub(crate) async fn member_in(state: tempfile::TempDir, toml: &str, listener: TcpListener) -> Self {
        let gateway = Gateway::start_at(parse(toml), state.path().to_owned(), Path::new("banyan.toml"));
        Self::serving(gateway, listener, state).await
    }

    /// Makes a state directory for another gate with the same id.
    pub(crate) fn twin(&self) -> tempfile::TempDir {
        let state = tempfile::tempdir().unwrap();
        let (from, to) = (self.state.path().join("nodes"), state.path().join("nodes"));
        std::fs::create_dir(&to).unwrap();
        for file in std::fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
        state
    }

    /// Starts a gate with the id kept in the state directory.
    pub(crate) async fn kept(state: tempfile::TempDir, toml: &str) -> Self {
        let gateway = Gateway::start_at(parse(toml), state.path().to_owned(), Path::new("banyan.toml"));
        Self::serving(gateway, TcpListener::bind("127.0.0.1:0").await.unwrap(), state).await
    }

    /// Ends the gate, and gives a copy of the state directory: connections of this process may still hold the lock on the original.
    pub(crate) async fn end_keeping(self) -> tempfile::TempDir {
        self.stop.cancel();
        self.gateway.shutdown().await;
        let kept = tempfile::tempdir().unwrap();
        copy(self.state.path(), kept.path());
        kept
    }

    /// Starts a gate that other machines reach: at an address of this machine other than the loopback.
    pub(crate) async fn on_a_network(toml: &str) -> Self {
        let state = tempfile::tempdir().unwrap();
        let gateway = Gateway::start(parse(toml), state.path().to_owned());
        Self::serving(gateway, TcpListener::bind((of_a_network(), 0)).await.unwrap(), state).await
    }

    async fn serving(gateway: Gateway, listener: TcpListener, state: tempfile::TempDir) -> Self {
        let addr = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(gateway.serve_http(listener, stop.clone(), Workers::default()));
        assert!(gateway.settled(Duration::from_secs(30)).await, "{:?}", gateway.status());
        Self { gateway, addr, stop, state }
    }

    /// Ends the gate and all connections.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.gateway.shutdown().await;
    }

    /// Begins to shut the gate.
    pub(crate) fn shut(&self) {
        self.stop.cancel();
    }

    /// Puts another configuration in force.
    pub(crate) fn apply(&self, toml: &str) -> Vec<String> {
        self.gateway.apply(parse(toml)).unwrap().iter().map(ToString::to_string).collect()
    }

    /// Gives the status of a mount.
    pub(crate) fn mount(&self, name: &str) -> Option<MountStatus> {
        self.gateway.status().into_iter().find(|m| m.name == name)
    }

    /// Waits for a status of a mount.
    pub(crate) async fn until(&self, name: &str, wanted: impl Fn(&MountStatus) -> bool) -> MountStatus {
        eventually(async || self.mount(name).filter(&wanted)).await
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Looks again and again until there is something.
pub(crate) async fn eventually<T>(look: impl AsyncFn() -> Option<T>) -> T {
    loop {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Finds an address of this machine on a network. Connections from here to that address do not come from the loopback.
fn of_a_network() -> IpAddr {
    // Nothing is sent: the system only says from where it would be.
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    probe.connect("198.51.100.1:9").expect("this test needs a network interface besides the loopback");
    let own = probe.local_addr().unwrap().ip();
    assert!(!own.is_loopback() && !own.is_unspecified(), "this test needs a network interface besides the loopback");
    own
}

pub(crate) fn parse(toml: &str) -> Config {
    config::parse(toml, Path::new("banyan.toml"), &SystemSources).unwrap_or_else(|e| panic!("{e}"))
}

/// Copies a directory, recursively.
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (kind, to) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy(&entry.path(), &to);
        } else if kind.is_file()
            && let Err(error) = std::fs::copy(entry.path(), to)
        {
            // A database takes its journal away when its last connection closes.
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
        }
    }
}
