//! Signed tokens whose key is a secret that both sides have (HS256), as the reference implementation of MCPx makes them. They are good for
//! rooms only, and for nothing else: whoever can check one can make one.

use std::time::SystemTime;

use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;

use super::token::{LEEWAY, Place, Wrong, is_good_until, over_at, wrong};

/// Whether a token says that it is one of these, which nothing proves yet.
pub(crate) fn is_shared(token: &str) -> bool {
    decode_header(token).is_ok_and(|header| header.alg == Algorithm::HS256)
}

/// Verifies one, and gives what it says and until when it is good.
pub(crate) fn shared(token: &str, secret: &[u8]) -> Result<(Place, SystemTime), Wrong> {
    #[derive(Deserialize)]
    struct Claims {
        exp: u64,
        #[serde(flatten)]
        place: Place,
    }
    if decode_header(token).map_err(|_| Wrong::Form)?.crit.is_some() {
        return Err(Wrong::Form);
    }
    let mut validation = Validation::new(Algorithm::HS256);
    validation.leeway = LEEWAY;
    validation.validate_exp = false;
    validation.validate_nbf = true;
    // Those of the reference name no audience: the topic is theirs.
    validation.validate_aud = false;
    validation.set_required_spec_claims(&["exp"]);
    match decode::<Claims>(token, &DecodingKey::from_secret(secret), &validation) {
        Ok(good) => {
            let until = over_at(good.claims.exp);
            is_good_until(until)?;
            Ok((good.claims.place, until))
        }
        Err(error) => {
            let why = wrong(&error);
            Err(if why == Wrong::Key { Wrong::Secret } else { why })
        }
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{EncodingKey, Header, encode};
    use serde_json::{Value, json};

    use super::*;

    const SECRET: &[u8] = b"a secret of thirty-two bytes or more";

    fn made(algorithm: Algorithm, secret: &[u8], claims: &Value) -> String {
        crate::tls::install_crypto();
        encode(&Header::new(algorithm), claims, &EncodingKey::from_secret(secret)).unwrap()
    }

    fn in_a_minute() -> u64 {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() + 60
    }

    #[test]
    fn a_token_of_the_reference_says_who_where_and_what() {
        let claims = json!({"participantId": "ann", "topic": "ops", "capabilities": ["chat"], "exp": in_a_minute(), "iat": 1});
        let (place, until) = shared(&made(Algorithm::HS256, SECRET, &claims), SECRET).unwrap();
        assert_eq!((place.participant, place.topic), (Some(json!("ann")), Some(json!("ops"))));
        assert_eq!(place.capabilities, Some(json!(["chat"])));
        assert!(until > SystemTime::now());
    }

    #[test]
    fn what_is_not_signed_so_or_not_good_is_refused() {
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
