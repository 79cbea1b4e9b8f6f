use std::os::unix::fs::PermissionsExt;

use crate::ca::*;

fn ca(dir: &Path) -> Ca {
    Ca::init(dir, &["gate.example.com".into(), "127.0.0.1".into()]).unwrap()
}

fn request() -> String {
    crate::join::request(&KeyPair::generate().unwrap()).unwrap()
}

fn admitted(ca: &Ca, token: &JoinToken, name: &str) -> Result<SignedCertificate, CaError> {
    ca.admit(&token.id, token.secret(), name, &request())
}

#[test]
fn an_authority_is_made_once_for_its_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("ca");
    let made = ca(&dir);
    assert!(matches!(Ca::init(&dir, &[]), Err(CaError::Exists { .. })));
    assert_eq!(Ca::open(&dir).unwrap().fingerprint().unwrap(), made.fingerprint().unwrap());
    for file in std::fs::read_dir(&dir).unwrap().flatten().filter(|file| file.file_name() != "ledger.lock") {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
    let names = names(&first(&files::read(&made.gate_file()).unwrap()).unwrap()).unwrap();
    assert_eq!((names.dns, names.uris, names.ips), (vec!["gate.example.com".into()], vec![GATE_URI.into()], vec![[127, 0, 0, 1].into()]));
}

#[test]
fn a_token_is_good_once_and_for_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let ca = ca(dir.path());
    let token: JoinToken = ca.invite(None, Duration::from_secs(60)).unwrap().to_string().parse().unwrap();
    assert!(matches!(ca.admit(&token.id, "wrong", "edge", &request()), Err(CaError::Token)));
    let signed = admitted(&ca, &token, "edge.example.com").unwrap();
    assert_eq!(signed.name, "edge.example.com");
    assert!(matches!(admitted(&ca, &token, "other"), Err(CaError::Token)), "it was used");
    let over = ca.invite(None, Duration::ZERO).unwrap();
    assert!(matches!(admitted(&ca, &over, "other"), Err(CaError::Token)), "it has ended");
    let text = std::fs::read_to_string(Ca::ledger_file(dir.path())).unwrap();
    assert!(!text.contains(token.secret()), "{text}");
}

#[test]
fn ax_13_a_certificate_has_the_name_the_authority_gave() {
    let dir = tempfile::tempdir().unwrap();
    let ca = ca(dir.path());
    let token = ca.invite(None, Duration::from_secs(60)).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut wishes = CertificateParams::new(vec!["gate.example.com".to_owned(), "other.example.com".to_owned()]).unwrap();
    wishes.subject_alt_names.push(SanType::URI(GATE_URI.try_into().unwrap()));
    wishes.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let csr = wishes.serialize_request(&key).unwrap().pem().unwrap();
    let signed = ca.admit(&token.id, token.secret(), "edge", &csr).unwrap();
    let names = names(&first(&signed.certificate).unwrap()).unwrap();
    assert_eq!((names.dns, names.uris), (vec!["edge".to_owned()], vec![]));
}

#[test]
fn a_name_has_one_holder_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let ca = ca(dir.path());
    let join = |name: &str| admitted(&ca, &ca.invite(None, Duration::from_secs(60)).unwrap(), name);
    assert!(matches!(join("GATE.example.com"), Err(CaError::Taken { .. })), "the gate's own name");
    let first_one = names(&first(&join("edge").unwrap().certificate).unwrap()).unwrap();
    assert!(matches!(join("edge"), Err(CaError::Taken { .. })));
    assert_eq!(ca.renew(&first_one.serial, &request()).unwrap().name, "edge");

    let meant = ca.invite(Some("edge"), Duration::from_secs(60)).unwrap();
    assert_eq!(admitted(&ca, &meant, "whatever").unwrap().name, "edge");
    assert!(RevokedSerials::read(dir.path()).unwrap().holds(&first_one.serial), "who had the name before has it no longer");
    assert!(matches!(ca.renew(&first_one.serial, &request()), Err(CaError::Stranger)));

    assert_eq!(Ledger::revoke(dir.path(), "edge").unwrap().len(), 1);
    assert_eq!(join("edge").unwrap().name, "edge");
}

#[test]
fn a_bad_request_uses_up_no_token() {
    let dir = tempfile::tempdir().unwrap();
    let ca = ca(dir.path());
    let token = ca.invite(None, Duration::from_secs(60)).unwrap();
    let mut torn = request();
    torn.replace_range(100..104, "AAAA");
    for bad in ["", "-----BEGIN CERTIFICATE REQUEST-----", &torn] {
        assert!(matches!(ca.admit(&token.id, token.secret(), "edge", bad), Err(CaError::Request)));
    }
    assert!(matches!(ca.admit(&token.id, token.secret(), "not a name", &request()), Err(CaError::Name { .. })));
    assert_eq!(admitted(&ca, &token, "edge").unwrap().name, "edge");
}

#[test]
fn a_join_token_reads_back_and_hides_in_debug() {
    let dir = tempfile::tempdir().unwrap();
    let token = ca(dir.path()).invite(None, Duration::from_secs(60)).unwrap();
    assert_eq!(token.to_string().parse(), Ok(token.clone()));
    assert!(!format!("{token:?}").contains(token.secret()));
    for bad in ["", "banyan1", "banyan1.a.b.c", "banyan2.x.y.z", &token.to_string()[..60]] {
        assert!(bad.parse::<JoinToken>().is_err(), "{bad}");
    }
}
