//! QUIC for AXCP: TLS of both sides, and the bounds of a connection. Reads no stream.

use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;
use call::words::party::Party;
use config::resolved::{ClientTls, Tls};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig, IdleTimeout, ServerConfig, TokioRuntime,
    TransportConfig, VarInt,
};
use runtime::random;
use runtime::tls::Connector;
use rustls::pki_types::CertificateDer;
use trust::{Client, first_certificate, names};

use crate::section::AxcpSettings;
use crate::slots::MOST_SLOTS;

/// Label of the key for resets, unlike all other keys from the secret.
const RESET: &[u8] = b"banyan axcp stateless reset";
/// Protocol of the connection (RFC 7301).
pub(crate) const ALPN: &[u8] = b"axcp/1";
/// Bytes of the id of a connection.
const ID: usize = 12;
/// Time without a packet after which a peer is gone.
const IDLE: VarInt = VarInt::from_u32(20_000);
/// Interval of signs of life.
const ALIVE: Duration = Duration::from_secs(6);
/// Bytes in flight in one direction of a connection.
const WINDOW: u32 = 1024 * 1024;
/// Bytes of datagrams that wait.
const DATAGRAMS: usize = 16 * 1024;
/// Handshakes under way, of peers whose names are not known yet.
const MOST_INCOMING: usize = MOST_SLOTS;
/// Bytes of packets of all waiting handshakes.
const MOST_WAITING: u64 = 1024 * 1024;

/// Failure to open the endpoint.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointError {
    #[error("{0}")]
    Trust(#[from] trust::TrustError),
    #[error("TLS cannot be used for QUIC: {0}")]
    Tls(String),
    #[error("the UDP port {0} cannot be opened: {1}. Choose another `listen`, or end the program that has the port")]
    Port(SocketAddr, std::io::Error),
    #[error("the certificate names nobody: give it a DNS name or a SPIFFE id")]
    Nobody,
}

/// Opens the endpoint: with `listen` for peers that dial, else for dialling only. With a secret kept over runs, the next run
/// of a killed gate resets the connections of the last at once (RFC 9000, section 10.3).
pub(crate) fn open(settings: &AxcpSettings, secret: Option<[u8; 32]>) -> Result<Endpoint, EndpointError> {
    let address = settings.listen.unwrap_or_else(|| (Ipv6Addr::UNSPECIFIED, 0).into());
    let socket = UdpSocket::bind(address).or_else(|error| {
        // A machine without IPv6 dials over IPv4.
        if settings.listen.is_none() { UdpSocket::bind(("0.0.0.0", 0)) } else { Err(error) }
    });
    let failed = |error| EndpointError::Port(address, error);
    let socket = socket.map_err(failed)?;
    let server = settings.listen.is_some().then(|| server(settings)).transpose()?;
    let mut config = secret.map_or_else(EndpointConfig::default, |secret| {
        let key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), RESET);
        EndpointConfig::new(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, key.as_ref())))
    });
    config.cid_generator(|| Box::new(RandomIds));
    Endpoint::new(config, server, socket, Arc::new(TokioRuntime)).map_err(failed)
}

/// Ids of connections. The default of the library ignores ids of an earlier run, and then resets no connection of that run.
struct RandomIds;

impl ConnectionIdGenerator for RandomIds {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&random::bytes::<ID>())
    }

    fn cid_len(&self) -> usize {
        ID
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// Makes the configuration for peers that dial. The files are read anew, and no session of earlier files is resumed.
pub(crate) fn server(settings: &AxcpSettings) -> Result<ServerConfig, EndpointError> {
    let files =
        Tls { certificate: settings.certificate.clone(), key: settings.key.clone(), client_ca: Some(settings.ca.clone()), required: true };
    let mut tls = rustls::ServerConfig::clone(&*trust::listener::server_config(&files)?);
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let crypto = QuicServerConfig::try_from(tls).map_err(|error| EndpointError::Tls(error.to_string()))?;
    let mut server = ServerConfig::with_crypto(Arc::new(crypto));
    server.transport_config(Arc::new(transport())).max_incoming(MOST_INCOMING).incoming_buffer_size_total(MOST_WAITING);
    Ok(server)
}

/// Makes the configuration for dialling. Changed files are read again.
pub(crate) fn client(settings: &AxcpSettings, connector: &Connector) -> Result<ClientConfig, EndpointError> {
    let own = Some((settings.certificate.clone(), settings.key.clone()));
    let mut tls = rustls::ClientConfig::clone(&*Client::new(ClientTls { own, ca: Some(settings.ca.clone()) }).config(connector)?);
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let crypto = QuicClientConfig::try_from(tls).map_err(|error| EndpointError::Tls(error.to_string()))?;
    let mut client = ClientConfig::new(Arc::new(crypto));
    client.transport_config(Arc::new(transport()));
    Ok(client)
}

/// Gives the name that the gate's own certificate proves to peers.
pub(crate) fn own_id(settings: &AxcpSettings) -> Result<Arc<str>, EndpointError> {
    let certificate = first_certificate(&settings.certificate)?;
    let party = Party::tls(names(&certificate), true);
    party.certified().map(|certified| Arc::clone(&certified.principal)).ok_or(EndpointError::Nobody)
}

/// Gives the other end of a connection, as far as a certificate proves a name.
pub(crate) fn party(connection: &Connection) -> Arc<Party> {
    let chain = connection.peer_identity().and_then(|identity| identity.downcast::<Vec<CertificateDer<'static>>>().ok());
    let certificate = chain.as_ref().and_then(|chain| chain.first());
    Party::tls(certificate.and_then(names), connection.remote_address().ip().to_canonical().is_loopback())
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .max_idle_timeout(Some(IdleTimeout::from(IDLE)))
        .keep_alive_interval(Some(ALIVE))
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .receive_window(VarInt::from_u32(WINDOW))
        .send_window(u64::from(WINDOW))
        .datagram_receive_buffer_size(Some(DATAGRAMS));
    transport
}
