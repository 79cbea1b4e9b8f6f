//! The claims of a token, read strictly from raw JSON. Does not know who signed them, nor which tokens came before.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use json::{Duplicates, Members};

use super::{DEEPEST_EXTENSION, EctDraft, EctFault, LONGEST_EXTENSION, LONGEST_TOKEN, MOST_AGE, MOST_PARENTS, SKEW};

/// Longest text of a claim, in bytes.
const LONGEST_TEXT: usize = 1024;
/// Most names in `aud`.
const MOST_AUDIENCE: usize = 32;

/// Claims of a token. Ids are in lower case, as `RFC 9562` compares them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EctClaims {
    pub draft: EctDraft,
    /// `jti`.
    pub id: String,
    pub issuer: Option<String>,
    pub audience: Vec<String>,
    /// `iat`, in seconds since 1970.
    pub issued: u64,
    /// `exp`, in seconds since 1970.
    pub expires: u64,
    /// `exec_act`.
    pub action: String,
    /// `wid`.
    pub workflow: Option<String>,
    pub parents: Vec<String>,
    /// `inp_hash`.
    pub input: Option<String>,
    /// `out_hash`.
    pub output: Option<String>,
    /// Raw text of the extension object.
    pub extension: Option<Vec<u8>>,
}

impl EctClaims {
    /// Reads the claims from JSON. Unknown members are allowed and left in the text.
    ///
    /// # Errors
    /// When a claim is missing, twice there, too long or of another form.
    pub fn parse(text: &[u8]) -> Result<Self, EctFault> {
        if text.len() > LONGEST_TOKEN {
            return Err(EctFault::Oversized("16384 bytes"));
        }
        let members = Members::parse(text, Duplicates::RefuseDeep).map_err(|why| EctFault::form(why.to_string()))?;
        let draft = draft(&members)?;
        let (issued, expires) = (seconds(&members, "iat")?, seconds(&members, "exp")?);
        if expires <= issued {
            return Err(EctFault::form("`exp` is not after `iat`"));
        }
        Ok(Self {
            draft,
            id: id(&required(&members, "jti")?)?,
            issuer: optional(&members, "iss")?,
            audience: audience(&members)?,
            issued,
            expires,
            action: required(&members, "exec_act")?,
            workflow: optional(&members, "wid")?.as_deref().map(id).transpose()?,
            parents: parents(&members, draft)?,
            input: hash(&members, "inp_hash")?,
            output: hash(&members, "out_hash")?,
            extension: extension(&members, draft)?,
        })
    }

    /// Checks times and audience for a verifier with these names at `now` (seconds since 1970).
    ///
    /// # Errors
    /// When the token is for another verifier, over, too old, or from the future.
    pub fn judge(&self, verifier: &[&str], now: u64) -> Result<(), EctFault> {
        if !self.audience.iter().any(|one| verifier.contains(&one.as_str())) {
            return Err(EctFault::Audience);
        }
        if now >= self.expires.saturating_add(SKEW) {
            return Err(EctFault::Expired);
        }
        if self.issued > now.saturating_add(SKEW) {
            return Err(EctFault::Early);
        }
        if now.saturating_sub(self.issued) > MOST_AGE { Err(EctFault::Stale) } else { Ok(()) }
    }
}

/// Finds the draft by the name of the predecessors. No token mixes names of both.
fn draft(members: &Members<'_>) -> Result<EctDraft, EctFault> {
    let has = |draft: EctDraft| members.has(draft.parents()) || members.has(draft.extension());
    match (has(EctDraft::Draft00), has(EctDraft::Draft01)) {
        (true, true) => Err(EctFault::Names),
        (false, true) => Ok(EctDraft::Draft01),
        (_, false) => Ok(EctDraft::Draft00),
    }
}

fn optional(members: &Members<'_>, name: &str) -> Result<Option<String>, EctFault> {
    members.get(name).map(|raw| text(raw, name)).transpose()
}

fn required(members: &Members<'_>, name: &str) -> Result<String, EctFault> {
    optional(members, name)?.ok_or_else(|| EctFault::form(format!("`{name}` is missing")))
}

fn text(raw: &[u8], name: &str) -> Result<String, EctFault> {
    let text = json::as_str(raw).filter(|text| !text.is_empty()).ok_or_else(|| EctFault::form(format!("`{name}` is no text")))?;
    if text.len() > LONGEST_TEXT { Err(EctFault::Oversized("1024 bytes in a claim")) } else { Ok(text.into_owned()) }
}

fn list(raw: &[u8], name: &str, most: usize, too_many: &'static str) -> Result<Vec<String>, EctFault> {
    let elements = json::elements(raw).ok_or_else(|| EctFault::form(format!("`{name}` is no array")))?;
    if elements.len() > most {
        return Err(EctFault::Oversized(too_many));
    }
    elements.into_iter().map(|element| text(element, name)).collect()
}

fn audience(members: &Members<'_>) -> Result<Vec<String>, EctFault> {
    let raw = members.get("aud").ok_or_else(|| EctFault::form("`aud` is missing"))?;
    let names = if raw.first() == Some(&b'"') { vec![text(raw, "aud")?] } else { list(raw, "aud", MOST_AUDIENCE, "32 names in `aud`")? };
    if names.is_empty() { Err(EctFault::form("`aud` is empty")) } else { Ok(names) }
}

fn parents(members: &Members<'_>, draft: EctDraft) -> Result<Vec<String>, EctFault> {
    let name = draft.parents();
    let raw = members.get(name).ok_or_else(|| EctFault::form(format!("`{name}` is missing")))?;
    let mut parents = Vec::new();
    for parent in list(raw, name, MOST_PARENTS, "100 predecessors")? {
        let parent = id(&parent)?;
        if parents.contains(&parent) {
            return Err(EctFault::form(format!("`{name}` names {parent} twice")));
        }
        parents.push(parent);
    }
    Ok(parents)
}

/// Reads a UUID and gives its lower case: another case would be another id to whoever compares bytes.
fn id(text: &str) -> Result<String, EctFault> {
    let is_sound = text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| if matches!(at, 8 | 13 | 18 | 23) { byte == b'-' } else { byte.is_ascii_hexdigit() });
    if is_sound { Ok(text.to_ascii_lowercase()) } else { Err(EctFault::form("an id is no UUID")) }
}

/// Reads a NumericDate without its fraction. Exponents are refused: no maker of tokens writes them.
fn seconds(members: &Members<'_>, name: &str) -> Result<u64, EctFault> {
    let wrong = || EctFault::form(format!("`{name}` is no time in seconds"));
    let text = members.get(name).and_then(|raw| std::str::from_utf8(raw).ok()).ok_or_else(wrong)?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.bytes().all(|byte| byte.is_ascii_digit()) { whole.parse().map_err(|_| wrong()) } else { Err(wrong()) }
}

fn hash(members: &Members<'_>, name: &str) -> Result<Option<String>, EctFault> {
    let Some(text) = optional(members, name)? else { return Ok(None) };
    let is_hash = URL_SAFE_NO_PAD.decode(&text).is_ok_and(|bytes| bytes.len() == 32);
    if is_hash { Ok(Some(text)) } else { Err(EctFault::form(format!("`{name}` is no SHA-256 in base64url"))) }
}

fn extension(members: &Members<'_>, draft: EctDraft) -> Result<Option<Vec<u8>>, EctFault> {
    let Some(raw) = members.get(draft.extension()) else { return Ok(None) };
    if raw.first() != Some(&b'{') {
        return Err(EctFault::form(format!("`{}` is no object", draft.extension())));
    }
    if raw.len() > LONGEST_EXTENSION {
        return Err(EctFault::Oversized("4096 bytes in its extension"));
    }
    if depth(raw) > DEEPEST_EXTENSION { Err(EctFault::Oversized("5 levels in its extension")) } else { Ok(Some(raw.to_vec())) }
}

/// Measures the nesting of sound JSON.
fn depth(raw: &[u8]) -> usize {
    let (mut level, mut deepest, mut is_text, mut is_escape) = (0_usize, 0, false, false);
    for byte in raw {
        match byte {
            _ if is_escape => is_escape = false,
            b'\\' => is_escape = true,
            b'"' => is_text = !is_text,
            b'{' | b'[' if !is_text => {
                level += 1;
                deepest = deepest.max(level);
            }
            b'}' | b']' if !is_text => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
