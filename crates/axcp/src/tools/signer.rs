//! Signatures of offers, by the key of a node's certificate. Decides about no offer.

use std::path::Path;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair, UnparsedPublicKey,
};
use axcp_proto::envelope::ReceivedEnvelope;
use axcp_proto::node_key::{NodeKey, NodeKeyKind};
use bytes::Bytes;
use quinn::Connection;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use trust::certificate;

/// Label of the id of a connection (RFC 8446, section 7.5).
const SESSION: &[u8] = b"EXPORTER-axcp-session";

/// Key of this node, by which offers are signed.
pub(crate) struct NodeSigner {
    pub(crate) key: NodeKey,
    pair: KeyPair,
}

enum KeyPair {
    Ed25519(Box<Ed25519KeyPair>),
    P256(Box<EcdsaKeyPair>),
}

impl NodeSigner {
    /// Reads the key of the node's certificate. `None`: the key is of a kind that signs no offers.
    pub(crate) fn read(own: &Path, private: &Path) -> Option<Self> {
        let key = key_of(&trust::first_certificate(own).ok()?)?;
        let private = certificate::key(private).ok()?;
        let der = private.secret_der();
        let pair = match (key.kind(), &private) {
            (NodeKeyKind::Ed25519, _) => KeyPair::Ed25519(Box::new(Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok()?)),
            (NodeKeyKind::P256, PrivateKeyDer::Sec1(_)) => {
                KeyPair::P256(Box::new(EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, der).ok()?))
            }
            (NodeKeyKind::P256, _) => KeyPair::P256(Box::new(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der).ok()?)),
        };
        Some(Self { key, pair })
    }

    /// Signs the bytes; nothing where the system has no random numbers.
    pub(crate) fn sign(&self, signed: &[u8]) -> Bytes {
        match &self.pair {
            KeyPair::Ed25519(pair) => Bytes::copy_from_slice(pair.sign(signed).as_ref()),
            KeyPair::P256(pair) => {
                pair.sign(&SystemRandom::new(), signed).map_or_else(|_| Bytes::new(), |made| Bytes::copy_from_slice(made.as_ref()))
            }
        }
    }
}

/// Key and connection of a peer, against which offers are checked.
pub(crate) struct PeerProof {
    key: Option<NodeKey>,
    /// Id of the connection, alike at both ends.
    pub(crate) session: [u8; 32],
}

impl PeerProof {
    /// Takes the key of the peer's certificate, and the id of the connection.
    pub(crate) fn of_connection(connection: &Connection) -> Self {
        let chain = connection.peer_identity().and_then(|identity| identity.downcast::<Vec<CertificateDer<'static>>>().ok());
        let key = chain.as_ref().and_then(|chain| chain.first()).and_then(key_of);
        let mut session = [0; 32];
        if connection.export_keying_material(&mut session, SESSION, b"").is_err() {
            // A connection without an id takes no offer: nobody makes one for random bytes.
            session = runtime::random::bytes();
        }
        Self { key, session }
    }

    /// Gives the name of the peer's key, where that key signed the envelope.
    pub(crate) fn signer(&self, envelope: &ReceivedEnvelope) -> Option<&str> {
        let key = self.key.as_ref()?;
        let (signed, signature) = (envelope.signed(), envelope.signature());
        let verified = match key.kind() {
            NodeKeyKind::Ed25519 => UnparsedPublicKey::new(&ED25519, key.public()).verify(&signed, signature),
            NodeKeyKind::P256 => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public()).verify(&signed, signature),
        };
        verified.ok().map(|()| key.did())
    }
}

fn key_of(own: &CertificateDer<'_>) -> Option<NodeKey> {
    NodeKey::of_certificate(&certificate::public_key(own)?)
}
