//! Connections to real listeners on loopback. Nothing here needs the network.

use std::io::Write;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

const AUTHORITY: &[u8] = include_bytes!("testdata/ca.pem");
const SERVER: &[u8] = include_bytes!("testdata/server.pem");
const SERVER_KEY: &[u8] = include_bytes!("testdata/server.key");
const LIMIT: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_server_of_an_extra_authority_is_trusted_and_http2_is_negotiated_when_asked() {
    let (port, _server) = serve_tls(2).await;
    let file = authority_file();
    let connector = Connector::with_extra_roots(Some(file.path().into()));

    let mut second = connector.connect(target(port, Security::TlsHttp2), LIMIT).await.unwrap();
    let mut first = connector.connect(target(port, Security::Tls), LIMIT).await.unwrap();

    assert!(second.is_http2());
    assert!(!first.is_http2());
    for io in [&mut first, &mut second] {
        io.write_all(b"ping").await.unwrap();
        io.flush().await.unwrap();
        let mut answer = [0; 4];
        io.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"ping");
    }
}

#[tokio::test]
async fn a_second_connection_resumes_the_session_of_the_first() {
    let (port, server) = serve_tls(2).await;
    let file = authority_file();
    let connector = Connector::with_extra_roots(Some(file.path().into()));
    for _ in 0..2 {
        let mut io = connector.connect(target(port, Security::Tls), LIMIT).await.unwrap();
        io.write_all(b"ping").await.unwrap();
        io.read_exact(&mut [0; 4]).await.unwrap();
    }
    assert_eq!(server.await.unwrap(), [rustls::HandshakeKind::Full, rustls::HandshakeKind::Resumed]);
}

#[tokio::test]
async fn a_server_of_an_unknown_authority_is_refused_with_what_to_do() {
    let (port, _server) = serve_tls(1).await;
    let connector = Connector::with_extra_roots(None);
    let error = connector.connect(target(port, Security::Tls), LIMIT).await.err().unwrap();
    let text = error.to_string();
    // On a machine without any authorities there is nothing to check against, which it then says.
    assert!(matches!(error, ConnectError::Certificate { .. } | ConnectError::Roots(_)), "{text}");
    assert!(text.contains("SSL_CERT_FILE"), "{text}");
}

#[tokio::test]
async fn a_port_nobody_listens_at_is_named() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let error = Connector::new().connect(target(port, Security::Plain), LIMIT).await.err().unwrap();
    let text = error.to_string();
    assert!(matches!(error, ConnectError::Refused { .. }), "{text}");
    assert!(text.contains(&format!("127.0.0.1:{port}")) && text.contains("start the server"), "{text}");
}

#[tokio::test]
async fn a_name_without_an_address_is_named() {
    let to = Target { host: "no-such-host.invalid", port: 80, security: Security::Plain };
    let error = Connector::new().connect(to, LIMIT).await.err().unwrap();
    assert!(matches!(error, ConnectError::Lookup { .. } | ConnectError::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("no-such-host.invalid"));
}

#[tokio::test]
async fn a_port_that_speaks_no_tls_is_told_apart_from_a_bad_certificate() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    let file = authority_file();
    let connector = Connector::with_extra_roots(Some(file.path().into()));
    let error = connector.connect(target(port, Security::Tls), LIMIT).await.err().unwrap();
    assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
    assert!(error.to_string().contains("http://"));
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_cut_off() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let file = authority_file();
    let connector = Connector::with_extra_roots(Some(file.path().into()));
    let error = connector.connect(target(port, Security::Tls), Duration::from_millis(50)).await.err().unwrap();
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("within 50 ms"));
}

#[test]
fn a_certificate_file_that_cannot_be_used_is_named() {
    let connector = Connector::with_extra_roots(Some("/nonexistent/authority.pem".into()));
    let text = connector.tls().err().unwrap().to_string();
    assert!(text.contains("/nonexistent/authority.pem") && text.contains("SSL_CERT_FILE"), "{text}");
}

#[test]
fn all_connections_share_one_configuration() {
    let file = authority_file();
    let connector = Connector::with_extra_roots(Some(file.path().into()));
    assert!(Arc::ptr_eq(&connector.tls().unwrap(), &connector.tls().unwrap()));
}

#[test]
fn address_families_alternate_and_the_first_choice_stays_first() {
    let parse = |list: &[&str]| list.iter().map(|a| a.parse().unwrap()).collect::<Vec<SocketAddr>>();
    let found = parse(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"]);
    assert_eq!(interleave(found), parse(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"]));
}

fn target(port: u16, security: Security) -> Target<'static> {
    Target { host: "127.0.0.1", port, security }
}

fn authority_file() -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(AUTHORITY).unwrap();
    file
}

/// Echoes four bytes on each of `count` TLS connections; ends with how each handshake went.
async fn serve_tls(count: usize) -> (u16, tokio::task::JoinHandle<Vec<rustls::HandshakeKind>>) {
    install_crypto();
    let chain = vec![CertificateDer::from_pem_slice(SERVER).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(SERVER_KEY).unwrap();
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let mut echoes = Vec::new();
        for _ in 0..count {
            let (tcp, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            echoes.push(tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(tcp).await else { return None };
                let kind = stream.get_ref().1.handshake_kind();
                let mut data = [0; 4];
                stream.read_exact(&mut data).await.ok()?;
                stream.write_all(&data).await.ok()?;
                stream.flush().await.ok()?;
                kind
            }));
        }
        let mut kinds = Vec::new();
        for echo in echoes {
            kinds.extend(echo.await.unwrap());
        }
        kinds
    });
    (port, task)
}

#[tokio::test]
async fn m16_no_connection_is_made_to_an_address_that_is_out_of_reach() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // The name of somebody else's domain, which leads to this machine.
    let named = url::Url::parse("http://a.plant.example/").unwrap();
    let to = Target { host: "localhost", port, security: Security::Plain };
    let reach = |hosts: &[&str]| Reach::new(&named, hosts.iter().map(|network| network.parse().unwrap()).collect());
    let connector = Connector::default();
    let refused = connector.connect_within(to, None, LIMIT, Some(&reach(&[]))).await.err().unwrap();
    assert!(matches!(refused, ConnectError::OutOfReach { address, .. } if address.is_loopback()), "{refused}");
    let listed = reach(&["127.0.0.0/8"]);
    assert!(connector.connect_within(to, None, LIMIT, Some(&listed)).await.is_ok(), "where the configuration has the network");
    assert!(connector.connect(to, LIMIT).await.is_ok());
}
