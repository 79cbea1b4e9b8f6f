//! `banyan device listen`: the draft's TLS transport (section 8.1) for controllers that have a certificate. Does not read messages.

mod handshakes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use config::resolved::Tls;
use gateway::trust;
use gateway::trust::listener::server_config;
use netdev::Site;
use rustix::net::sockopt;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use self::handshakes::Handshakes;
use super::Compat;
use crate::arguments::Place;
use crate::failure::Failure;
use crate::log::Log;
use crate::output::Output;
use crate::printable::printable;
use crate::threads;

/// Name of the protocol in the handshake.
const PROTOCOL: &[u8] = b"mcp";
/// Most connections of one controller.
const OF_ONE: usize = 8;
/// Most connections of all controllers.
const OF_ALL: usize = 64;
/// Silence of a network before it is asked for its peer.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// Pause after a connection that could not be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// Address for controllers, and the certificates that let them in.
#[derive(Args)]
pub(super) struct Listen {
    /// Name of the device
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
    /// PEM file of the authorities of controllers: nobody else is let in
    #[arg(long)]
    client_ca: PathBuf,
    /// Shapes of prompts and updates
    #[arg(long, value_enum, default_value_t = Compat::Draft)]
    compat: Compat,
    #[command(flatten)]
    log: Log,
}

/// Connections of each controller.
type Counts = Arc<Mutex<BTreeMap<String, usize>>>;

impl Listen {
    pub(super) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        self.log.start()?;
        let site = super::site(&self.name, &super::configuration(place)?)?;
        let tls =
            Tls { certificate: self.certificate.clone(), key: self.key.clone(), client_ca: Some(self.client_ca.clone()), required: true };
        let mut config = server_config(&tls).map_err(|error| Failure::Refused(error.to_string()))?;
        Arc::make_mut(&mut config).alpn_protocols = vec![PROTOCOL.to_vec()];
        threads::serving()?.block_on(async {
            let taken = |error: std::io::Error| Failure::Refused(format!("can't listen on {}: {error}", printable(&self.address)));
            let listener = TcpListener::bind(&self.address).await.map_err(taken)?;
            let address = listener.local_addr().map_err(taken)?;
            super::done(&format!("{} listens on {address}", self.name), &json!({ "device": self.name, "address": address }), output)?;
            tokio::spawn(netdev::restore_when_due(site.clone()));
            accept(&listener, config, &site, self.compat).await
        })
    }
}

/// Takes connections for ever.
async fn accept(listener: &TcpListener, config: Arc<rustls::ServerConfig>, site: &Site, compat: Compat) -> Result<(), Failure> {
    let (counts, handshakes) = (Counts::default(), Handshakes::default());
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if let Err(error) = keep_alive(&stream) {
            tracing::debug!(%error, "a connection keeps no watch over its peer");
        }
        let (config, site, counts) = (Arc::clone(&config), site.clone(), Arc::clone(&counts));
        let handshake = handshakes.begin(address.ip().to_canonical());
        tokio::spawn(async move {
            if let Some((stream, party)) = handshake.shake(trust::accept(config, stream)).await {
                serve(stream, &party, &site, compat, &counts).await;
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

async fn serve(
    stream: Box<tokio_rustls::server::TlsStream<TcpStream>>,
    party: &trust::Party,
    site: &Site,
    compat: Compat,
    counts: &Counts,
) {
    let Some(controller) = party.certified() else {
        return tracing::warn!("a controller without a certificate was refused");
    };
    if stream.get_ref().1.alpn_protocol() != Some(PROTOCOL) {
        return tracing::warn!(
            controller = &*controller.principal,
            "a controller was refused that does not ask for the protocol `mcp` (ALPN)"
        );
    }
    let Some(_counted) = CountedConnection::new(counts, &controller.principal) else {
        return tracing::warn!(controller = &*controller.principal, "a controller was refused that has too many connections");
    };
    tokio::select! {
        served = netdev::serve_controller(site.of_controller(&controller.principal), compat.into(), stream) => {
            if let Err(error) = served {
                tracing::debug!(controller = &*controller.principal, %error, "a connection broke");
            }
        }
        () = party.ended() => tracing::warn!(controller = &*controller.principal, "the certificate of a controller has expired"),
    }
}

/// A connection that counts for its controller until dropped.
struct CountedConnection {
    counts: Counts,
    controller: String,
}

impl CountedConnection {
    /// Counts a connection; `None` where its controller, or all together, have as many as they may.
    fn new(counts: &Counts, controller: &str) -> Option<Self> {
        let mut all = counts.lock().unwrap_or_else(PoisonError::into_inner);
        if all.values().sum::<usize>() >= OF_ALL || all.get(controller).is_some_and(|count| *count >= OF_ONE) {
            return None;
        }
        *all.entry(controller.to_owned()).or_default() += 1;
        Some(Self { counts: Arc::clone(counts), controller: controller.to_owned() })
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = all.get_mut(&self.controller) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.controller);
            }
        }
    }
}
