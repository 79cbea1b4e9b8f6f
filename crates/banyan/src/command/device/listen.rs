//! `banyan device listen`: the draft's TLS transport (section 8.1) for controllers that have a certificate. Each controller is a caller of the
//! gate with the device, so that nothing reaches the device but by the one way of every call. Does not read messages.

mod connections;
mod handshakes;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use config::resolved::{Config, Tls};
use gateway::trust;
use gateway::trust::listener::server_config;
use netdev::{Code, ControllerShapes, Fault};
use runtime::listening;
use rustix::net::sockopt;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::server::TlsStream;

use self::connections::ConnectionCounts;
use self::handshakes::Handshakes;
use super::Compat;
use crate::arguments::Place;
use crate::bridged::BridgedGate;
use crate::failure::Failure;
use crate::log::Log;
use crate::output::Output;
use crate::places;
use crate::printable::printable;
use crate::threads;

/// Name of this command.
const COMMAND: &str = "banyan device listen";
/// Name of the protocol in the handshake.
const PROTOCOL: &[u8] = b"mcp";
/// Most connections that are told at a time why they are refused; further ones end without a word.
const REFUSALS: usize = 16;
/// Silence of a network before it is asked for its peer.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// Pause after a connection that could not be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// Address for controllers, and the certificates that let them in.
#[derive(Args)]
pub(super) struct Listen {
    /// Name of the device, or of a group: each of its devices is served to controllers that name it in the handshake
    name: String,
    /// Address and port
    #[arg(long, default_value = "127.0.0.1:8443")]
    address: String,
    /// PEM file of the certificate to show, with its chain
    #[arg(long)]
    certificate: PathBuf,
    /// PEM file of the private key of the certificate
    #[arg(long)]
    key: PathBuf,
    /// PEM file of the authorities of controllers: no other controller is let in
    #[arg(long)]
    client_ca: PathBuf,
    /// Shapes of prompts and updates
    #[arg(long, value_enum, default_value_t = Compat::Draft)]
    compat: Compat,
    #[command(flatten)]
    log: Log,
}

impl Listen {
    pub(super) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        self.log.start()?;
        let devices = served(&self.name, &super::configuration(place)?)?;
        let tls =
            Tls { certificate: self.certificate.clone(), key: self.key.clone(), client_ca: Some(self.client_ca.clone()), required: true };
        let mut config = server_config(&tls).map_err(|error| Failure::Refused(error.to_string()))?;
        Arc::make_mut(&mut config).alpn_protocols = vec![PROTOCOL.to_vec()];
        // The gate is that of the configuration with the device.
        let place = Place { config: places::config_file(place.config.as_deref())?, gate: place.gate.clone() };
        let gate = BridgedGate::new(None, &place, self.log.format(), COMMAND, output)?;
        let (counts, refusals) = (ConnectionCounts::default(), Semaphore::new(REFUSALS));
        let door = Arc::new(ControllerDoor { gate, devices, shapes: self.compat.into(), counts, refusals });
        threads::serving()?.block_on(async {
            // What keeps the gate from serving the device is better said here than to each controller.
            for device in door.devices.names() {
                drop(door.gate.reach_server(COMMAND, device).await?);
            }
            let taken = |error: std::io::Error| Failure::Refused(format!("can't listen on {}: {error}", printable(&self.address)));
            let listener = listening::listener(&self.address).await.map_err(taken)?;
            let address = listener.local_addr().map_err(taken)?;
            super::done(&format!("{} listens on {address}", self.name), &json!({ "device": self.name, "address": address }), output)?;
            accept(&listener, config, &door).await
        })
    }
}

/// Devices behind the listener.
enum ServedNames {
    One(String),
    Group { group: String, devices: Vec<String> },
}

impl ServedNames {
    fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Group { devices, .. } => devices,
        }
    }

    /// The device that a controller means: in a group that of the first label of the host name in the handshake (SNI).
    fn meant(&self, host: Option<&str>) -> Result<&str, Fault> {
        let (group, devices) = match self {
            Self::One(name) => return Ok(name),
            Self::Group { group, devices } => (group, devices),
        };
        let label = host.and_then(|host| host.split('.').next());
        let found = devices.iter().find(|device| Some(device.as_str()) == label);
        found.map(String::as_str).ok_or_else(|| {
            let given = host.map_or_else(|| "the handshake names no host".to_owned(), |host| format!("the handshake names `{host}`"));
            let detail = format!(
                "{given}, and this address serves the group `{group}`: connect by a host name whose first label is a device of the group"
            );
            Fault::new(Code::Unreachable, detail)
        })
    }
}

/// Finds the device of this name, or the devices of the group.
fn served(name: &str, config: &Config) -> Result<ServedNames, Failure> {
    let all = super::devices(config);
    if !all.groups.contains_key(name) {
        super::known(name, config)?;
        return Ok(ServedNames::One(name.to_owned()));
    }
    let members = all.all.values().filter(|device| device.groups.iter().any(|group| group == name));
    let devices: Vec<String> = members.map(|device| device.name.clone()).collect();
    if devices.is_empty() {
        return Err(Failure::NotFound(format!("the group `{}` has no devices\n  name it in `groups` of some", printable(name))));
    }
    Ok(ServedNames::Group { group: name.to_owned(), devices })
}

/// Way of controllers to the devices.
struct ControllerDoor {
    gate: BridgedGate,
    devices: ServedNames,
    shapes: ControllerShapes,
    counts: ConnectionCounts,
    refusals: Semaphore,
}

/// Takes connections for ever.
async fn accept(listener: &TcpListener, config: Arc<rustls::ServerConfig>, door: &Arc<ControllerDoor>) -> Result<(), Failure> {
    let handshakes = Handshakes::default();
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if let Err(error) = keep_alive(&stream) {
            tracing::debug!(%error, "a connection keeps no watch over its peer");
        }
        let (config, door) = (Arc::clone(&config), Arc::clone(door));
        let handshake = handshakes.begin(address.ip().to_canonical());
        tokio::spawn(async move {
            if let Some((stream, party)) = handshake.shake(trust::accept(config, stream)).await {
                door.serve(stream, &party).await;
            }
        });
    }
}

/// Ends a connection whose controller is gone without a word: it may be silent for as long as it likes, and the network may not.
fn keep_alive(stream: &TcpStream) -> std::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    #[cfg(target_os = "linux")]
    {
        sockopt::set_tcp_keepidle(stream, KEEPALIVE)?;
        sockopt::set_tcp_keepintvl(stream, KEEPALIVE / 4)?;
        sockopt::set_tcp_keepcnt(stream, 4)?;
    }
    Ok(())
}

impl ControllerDoor {
    async fn serve(&self, stream: Box<TlsStream<TcpStream>>, party: &trust::Party) {
        let Some(controller) = party.certified().map(|certified| &*certified.principal) else {
            let detail = "a controller needs a certificate of an authority that this listener knows, with a DNS name or a spiffe:// URI";
            return self.refuse(stream, "without a certificate", &Fault::new(Code::AccessDenied, detail)).await;
        };
        if stream.get_ref().1.alpn_protocol() != Some(PROTOCOL) {
            let detail = "the handshake asks for no protocol: ask for `mcp` (ALPN)";
            return self.refuse(stream, controller, &Fault::new(Code::AccessDenied, detail)).await;
        }
        let device = match self.devices.meant(stream.get_ref().1.server_name()) {
            Ok(device) => device.to_owned(),
            Err(fault) => return self.refuse(stream, controller, &fault).await,
        };
        let Some(_counted) = self.counts.count(controller, &device) else {
            let detail = "too many connections are open: close one, or go on with one";
            return self.refuse(stream, controller, &Fault::new(Code::Unreachable, detail).retryable()).await;
        };
        tokio::select! {
            () = self.carry(stream, controller, &device) => {}
            () = party.ended() => tracing::warn!(controller, "the certificate of a controller has expired"),
        }
    }

    /// Says to a controller, and in the log, why the controller is not served.
    async fn refuse(&self, stream: Box<TlsStream<TcpStream>>, controller: &str, fault: &Fault) {
        tracing::warn!(controller, why = %fault.detail, "a controller was refused");
        let Ok(_place) = self.refusals.try_acquire() else { return };
        if let Err(error) = netdev::refuse_controller(stream, fault).await {
            tracing::debug!(controller, %error, "a connection broke");
        }
    }

    async fn carry(&self, stream: Box<TlsStream<TcpStream>>, controller: &str, device: &str) {
        let gate = match self.gate.reach_server(controller, device).await {
            Ok(gate) => gate,
            Err(error) => {
                tracing::warn!(controller, device, %error, "no gate serves the device");
                let fault = Fault::new(Code::Unreachable, "no gate serves this device at present").retryable();
                return self.refuse(stream, controller, &fault).await;
            }
        };
        if let Err(error) = netdev::carry_controller(stream, self.shapes, gate).await {
            tracing::debug!(controller, device, %error, "a connection broke");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_11_the_host_in_the_handshake_names_the_device() {
        let devices = vec!["r1".to_owned(), "r2".to_owned()];
        let group = ServedNames::Group { group: "edge".to_owned(), devices };
        assert_eq!(group.meant(Some("r2.example.net")).unwrap(), "r2");
        assert_eq!(group.meant(Some("r1")).unwrap(), "r1");
        for host in [None, Some("r3.example.net"), Some("edge"), Some("")] {
            let fault = group.meant(host).unwrap_err();
            assert!(fault.code == Code::Unreachable && fault.detail.contains("first label"), "{host:?} {fault:?}");
            // Controllers of a single device may name any host.
            assert_eq!(ServedNames::One("r1".to_owned()).meant(host).unwrap(), "r1");
        }
    }
}
