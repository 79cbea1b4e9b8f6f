//! Pairs of bindings in requests, and refusals for want of a way. Sends none.

use bridge::{BindingId, BridgeError, BridgeProblem};
use http::{HeaderMap, StatusCode};

const SOURCE: &str = "aepb-source-protocol";
const DESTINATION: &str = "aepb-dest-protocol";
const TARGET: &str = "aepb-target";

/// Bindings and target that a request names.
pub struct WantedPair {
    pub from: BindingId,
    pub to: BindingId,
    pub target: String,
}

/// Refusal in the form of no binding.
#[derive(Debug)]
pub struct NoPassage {
    pub status: StatusCode,
    pub code: &'static str,
    /// Text for people. Holds no content of a message.
    pub text: String,
}

impl NoPassage {
    /// Makes a refusal with a code of AEPB.
    pub fn new(status: StatusCode, code: &'static str, text: impl Into<String>) -> Self {
        Self { status, code, text: text.into() }
    }

    /// Makes a refusal by a rule of this gate.
    pub fn forbidden(text: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "policy_violation", text)
    }

    /// Makes a refusal for want of a translation.
    pub fn no_path(text: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "no_translation_path", text)
    }
}

impl From<BridgeError> for NoPassage {
    fn from(error: BridgeError) -> Self {
        let BridgeProblem { status, code, title, detail } = BridgeProblem::from(&error);
        Self::new(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), code, format!("{title}: {detail}"))
    }
}

impl WantedPair {
    /// Reads the header fields of a request. Each stands once.
    pub fn read(headers: &HeaderMap) -> Result<Self, NoPassage> {
        let field = |name: &str| {
            let mut values = headers.get_all(name).iter();
            let text = values.next().and_then(|value| value.to_str().ok()).filter(|_| values.next().is_none());
            let why =
                || NoPassage::new(StatusCode::BAD_REQUEST, "incomplete", format!("The request needs the field `{name}` once, in ASCII."));
            text.map(str::to_owned).ok_or_else(why)
        };
        let (from, to, target) = (field(SOURCE)?, field(DESTINATION)?, field(TARGET)?);
        let known = |id: &str| BindingId::parse(id).filter(|binding| binding.has_codec());
        match (known(&from), known(&to)) {
            (Some(from), Some(to)) if from != to => Ok(Self { from, to, target }),
            _ => Err(NoPassage::no_path("This gate does not translate the pair.")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(fields: &[(&'static str, &str)]) -> Result<WantedPair, NoPassage> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        WantedPair::read(&headers)
    }

    #[test]
    fn ae_10_a_pair_is_named_once_and_known() {
        let pair = asked(&[(SOURCE, "uacp-v1"), (DESTINATION, "mcp-v1"), (TARGET, "disk")]).unwrap();
        assert_eq!((pair.from, pair.to, pair.target.as_str()), (BindingId::Uacp, BindingId::Mcp, "disk"));
        for (from, to) in [("uacp-v1", "slim-v1"), ("slim-v1", "mcp-v1"), ("mcp-v1", "mcp-v1"), ("x", "mcp-v1")] {
            let refused = asked(&[(SOURCE, from), (DESTINATION, to), (TARGET, "disk")]).err().unwrap();
            assert_eq!((refused.status, refused.code), (StatusCode::NOT_FOUND, "no_translation_path"), "{from} {to}");
        }
        let twice = [(SOURCE, "uacp-v1"), (SOURCE, "a2a-v1"), (DESTINATION, "mcp-v1"), (TARGET, "disk")];
        assert_eq!(asked(&twice).err().unwrap().code, "incomplete");
        assert_eq!(asked(&twice[1..3]).err().unwrap().status, StatusCode::BAD_REQUEST);
    }
}
