//! Signed tokens with a shared secret as key (HS256), as the reference implementation of MCPx makes them. Good for rooms only, since every
//! verifier of a shared secret can also sign.

use std::time::SystemTime;

use jsonwebtoken::{Algorithm, DecodingKey};
use policy::jws::{Expected, Token, Unverified};
use serde::Deserialize;

use crate::token::{Wrong, is_good_until, over_at, seconds, wrong};
use call::words::granted::Place;

/// Checks for a token that claims HS256; no signature is verified.
pub fn is_shared(token: &str) -> bool {
    Token::read(token).is_ok_and(|token| token.algorithm() == Algorithm::HS256)
}

/// Verifies a token with a shared secret; returns its place and expiry.
pub fn shared(token: &str, secret: &[u8]) -> Result<(Place, SystemTime), Wrong> {
    #[derive(Deserialize)]
    struct Claims {
        exp: u64,
        #[serde(flatten)]
        place: Place,
    }
    let token = Token::read(token).map_err(wrong)?;
    if token.algorithm() != Algorithm::HS256 {
        return Err(Wrong::Secret);
    }
    // Tokens of the reference name no audience, since their topic stands for it.
    let expected = Expected { audience: None, issuer: None, claims: &["exp"] };
    let Claims { exp, place } = match token.verified(&DecodingKey::from_secret(secret), &expected, seconds()) {
        Ok(claims) => claims,
        Err(Unverified::Signature) => return Err(Wrong::Secret),
        Err(why) => return Err(wrong(why)),
    };
    let until = over_at(exp);
    is_good_until(until)?;
    Ok((place, until))
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{EncodingKey, Header, encode};
    use serde_json::{Value, json};

    use super::*;

    const SECRET: &[u8] = b"a secret of thirty-two bytes or more";

    fn made(algorithm: Algorithm, secret: &[u8], claims: &Value) -> String {
        runtime::tls::install_crypto();
        encode(&Header::new(algorithm), claims, &EncodingKey::from_secret(secret)).unwrap()
    }

    fn in_a_minute() -> u64 {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() + 60
    }

    #[test]
    fn a_token_of_the_reference_names_participant_and_topic() {
        let claims = json!({"participantId": "ann", "topic": "ops", "capabilities": ["chat"], "exp": in_a_minute(), "iat": 1});
        let (place, until) = shared(&made(Algorithm::HS256, SECRET, &claims), SECRET).unwrap();
        assert_eq!((place.participant, place.topic), (Some(json!("ann")), Some(json!("ops"))));
        assert_eq!(place.capabilities, Some(json!(["chat"])));
        assert!(until > SystemTime::now());
    }

    #[test]
    fn a_wrong_signature_or_an_expired_token_is_refused() {
        let good = json!({"participantId": "ann", "topic": "ops", "exp": in_a_minute()});
        let over = json!({"participantId": "ann", "topic": "ops", "exp": 1});
        let refused = |algorithm, secret: &[u8], claims: &Value| shared(&made(algorithm, secret, claims), SECRET).unwrap_err();
        assert_eq!(refused(Algorithm::HS256, b"another secret of thirty-two bytes", &good), Wrong::Secret);
        assert_eq!(refused(Algorithm::HS384, SECRET, &good), Wrong::Secret);
        assert_eq!(refused(Algorithm::HS256, SECRET, &over), Wrong::Over);
        assert_eq!(refused(Algorithm::HS256, SECRET, &json!({"participantId": "ann"})), Wrong::Form);
        assert_eq!(shared("a.b.c", SECRET).unwrap_err(), Wrong::Form);
        assert!(!is_shared(&made(Algorithm::HS384, SECRET, &good)) && !is_shared("x"));
    }
}
