//! Signed tokens with a shared secret as key (HS256), as the reference implementation of MCPx makes them. Good for rooms only, since every
//! verifier of a shared secret can also sign.

use std::time::{Duration, SystemTime};

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header};
use policy::jws::{Expected, Token, Unverified};
use serde::Deserialize;
use serde_json::{Number, Value, json};

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
        exp: Number,
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
    // A time with a fraction (RFC 7519, 2) ends with the second before.
    let until = over_at(exp.as_u64().or_else(|| whole(exp.as_f64()?)).ok_or(Wrong::Form)?);
    is_good_until(until)?;
    Ok((place, until))
}

/// Claims of a token for rooms.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoomClaims<'a> {
    pub participant: &'a str,
    pub topics: &'a [String],
    /// `None`: as the room says.
    pub capabilities: Option<&'a [Value]>,
    /// `all` or `directed`; `None`: as the room says.
    pub routing: Option<&'a str>,
    pub echo: Option<bool>,
}

impl RoomClaims<'_> {
    /// Signs a token with a shared secret; `None`: the signer fails.
    pub fn sign(&self, secret: &[u8], until: SystemTime) -> Option<String> {
        let second = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let topic = if let [only] = self.topics { json!(only) } else { json!(self.topics) };
        let mut claims = json!({"participantId": self.participant, "topic": topic, "exp": second(until), "iat": second(SystemTime::now())});
        let more = [
            ("capabilities", self.capabilities.map(|all| json!(all))),
            ("routing", self.routing.map(|routing| json!(routing))),
            ("echo", self.echo.map(|echo| json!(echo))),
        ];
        claims.as_object_mut()?.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &EncodingKey::from_secret(secret)).ok()
    }
}

/// Cuts the fraction of a time; `None`: beyond all times.
fn whole(seconds: f64) -> Option<u64> {
    Some(Duration::try_from_secs_f64(seconds).ok()?.as_secs())
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::encode;

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
        let python = json!({"participantId": "ann", "topic": "ops", "exp": in_a_minute() as f64 + 0.25});
        let (_, with_fraction) = shared(&made(Algorithm::HS256, SECRET, &python), SECRET).unwrap();
        assert!(with_fraction >= until, "what `time.time() + 60` makes is a time");
    }

    #[test]
    fn a_token_made_here_is_taken_here() {
        runtime::tls::install_crypto();
        let topics = ["ops".to_owned(), "dev".to_owned()];
        let may = [json!("chat")];
        let claims =
            RoomClaims { participant: "bot", topics: &topics, capabilities: Some(&may), routing: Some("directed"), echo: Some(false) };
        let until = SystemTime::now() + Duration::from_secs(60);
        let (place, _) = shared(&claims.sign(SECRET, until).unwrap(), SECRET).unwrap();
        assert_eq!((place.participant, place.topic), (Some(json!("bot")), Some(json!(["ops", "dev"]))));
        assert_eq!((place.capabilities, place.routing, place.echo), (Some(json!(["chat"])), Some(json!("directed")), Some(json!(false))));
        let plain = RoomClaims { participant: "bot", topics: &topics[..1], ..RoomClaims::default() };
        let (place, _) = shared(&plain.sign(SECRET, until).unwrap(), SECRET).unwrap();
        assert_eq!((place.topic, place.capabilities, place.echo), (Some(json!("ops")), None, None));
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
