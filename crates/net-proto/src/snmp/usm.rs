//! The user-based security of v3 (RFC 3414) with SHA (RFC 3414, 7860) and AES (RFC 3826): keys, signatures, encryption and the clock of an
//! engine. MD5 and DES are left out: both are broken. A signature is compared in constant time, before anything behind it is looked at. Knows no request.

use std::fmt;

use aws_lc_rs::cipher::{AES_128, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{self, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, SHA512};
use aws_lc_rs::hmac::{self, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256, HMAC_SHA384, HMAC_SHA512};
use aws_lc_rs::iv::FixedLength;

use super::ber::{self, BerReader};
use super::{LARGEST, Oid, Pdu, SnmpError};

/// Bytes of a password repeated for a key.
const STRETCHED: usize = 1 << 20;
/// Seconds by which a message may be late.
const WINDOW: u32 = 150;
const V3: i64 = 3;
const USM: i64 = 3;
const IS_SIGNED: u8 = 1;
const IS_ENCRYPTED: u8 = 2;
const IS_REPORTABLE: u8 = 4;

/// Hash behind the signatures of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthProtocol {
    #[default]
    Sha,
    Sha256,
    Sha384,
    Sha512,
}

impl AuthProtocol {
    const fn digest(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha => &SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &SHA256,
            Self::Sha384 => &SHA384,
            Self::Sha512 => &SHA512,
        }
    }

    /// First bytes of a HMAC, as messages hold them.
    fn sign(self, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        let (algorithm, length) = match self {
            Self::Sha => (HMAC_SHA1_FOR_LEGACY_USE_ONLY, 12),
            Self::Sha256 => (HMAC_SHA256, 24),
            Self::Sha384 => (HMAC_SHA384, 32),
            Self::Sha512 => (HMAC_SHA512, 48),
        };
        let tag = hmac::sign(&hmac::Key::new(algorithm, key), bytes);
        tag.as_ref()[..length].to_vec()
    }
}

/// Cipher of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrivacyProtocol {
    #[default]
    Aes128,
    Aes256,
}

impl PrivacyProtocol {
    const fn key_length(self) -> usize {
        match self {
            Self::Aes128 => 16,
            Self::Aes256 => 32,
        }
    }

    fn key(self, key: &[u8]) -> Result<UnboundCipherKey, SnmpError> {
        let algorithm = if self == Self::Aes128 { &AES_128 } else { &AES_256 };
        UnboundCipherKey::new(algorithm, key).map_err(|_| SnmpError::Cipher)
    }

    fn encrypt(self, key: &[u8], iv: [u8; 16], text: &mut [u8]) -> Result<(), SnmpError> {
        let key = EncryptingKey::cfb128(self.key(key)?).map_err(|_| SnmpError::Cipher)?;
        key.less_safe_encrypt(text, EncryptionContext::Iv128(FixedLength::from(iv))).map(drop).map_err(|_| SnmpError::Cipher)
    }

    fn decrypt(self, key: &[u8], iv: [u8; 16], text: &mut [u8]) -> Result<(), SnmpError> {
        let key = DecryptingKey::cfb128(self.key(key)?).map_err(|_| SnmpError::Cipher)?;
        key.decrypt(text, DecryptionContext::Iv128(FixedLength::from(iv))).map(drop).map_err(|_| SnmpError::Cipher)
    }
}

/// Protection of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecurityLevel {
    Plain,
    Signed,
    Encrypted,
}

/// A user with keys that fit no engine yet.
#[derive(Clone, PartialEq, Eq)]
pub struct SnmpUser {
    pub name: String,
    auth: AuthProtocol,
    auth_key: Vec<u8>,
    privacy: Option<(PrivacyProtocol, Vec<u8>)>,
}

impl fmt::Debug for SnmpUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnmpUser").field("name", &self.name).field("auth", &self.auth).finish_non_exhaustive()
    }
}

impl SnmpUser {
    /// Makes the keys of a user, which takes a mebibyte of hashing for each password.
    pub fn new(name: &str, auth: AuthProtocol, password: &str, privacy: Option<(PrivacyProtocol, &str)>) -> Self {
        let privacy = privacy.map(|(protocol, password)| (protocol, stretched(auth, password)));
        Self { name: name.to_owned(), auth, auth_key: stretched(auth, password), privacy }
    }

    /// The user with the keys for an engine.
    pub fn at(&self, engine: &[u8]) -> LocalUser {
        let localized = |key: &[u8]| digest::digest(self.auth.digest(), &[key, engine, key].concat()).as_ref().to_vec();
        let privacy = self.privacy.as_ref().map(|(protocol, key)| {
            let mut key = localized(key);
            key.truncate(protocol.key_length());
            (*protocol, key)
        });
        LocalUser { name: self.name.clone(), engine: engine.to_vec(), auth: self.auth, auth_key: localized(&self.auth_key), privacy }
    }

    /// Protection of all messages of this user.
    pub const fn level(&self) -> SecurityLevel {
        if self.privacy.is_some() { SecurityLevel::Encrypted } else { SecurityLevel::Signed }
    }
}

/// Hash of the password repeated to a mebibyte (RFC 3414, appendix A.2).
fn stretched(auth: AuthProtocol, password: &str) -> Vec<u8> {
    let mut block = Vec::with_capacity(1 << 12);
    while !password.is_empty() && block.len() < STRETCHED {
        block.extend_from_slice(password.as_bytes());
    }
    block.truncate(STRETCHED);
    digest::digest(auth.digest(), &block).as_ref().to_vec()
}

/// A user with the keys for one engine.
#[derive(Clone)]
pub struct LocalUser {
    name: String,
    engine: Vec<u8>,
    auth: AuthProtocol,
    auth_key: Vec<u8>,
    privacy: Option<(PrivacyProtocol, Vec<u8>)>,
}

impl fmt::Debug for LocalUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalUser").field("name", &self.name).finish_non_exhaustive()
    }
}

impl LocalUser {
    /// Engine that the keys fit.
    pub fn engine(&self) -> &[u8] {
        &self.engine
    }

    /// A signed message, encrypted where the user has a cipher; `clock` is boots and time of the engine. A salt is never used twice.
    ///
    /// # Errors
    /// The cipher does not take the key.
    pub fn seal(&self, pdu: &Pdu, id: i32, clock: (u32, u32), salt: u64) -> Result<Vec<u8>, SnmpError> {
        self.seal_within(&SnmpContext { engine: self.engine.clone(), name: Vec::new() }, pdu, id, clock, salt)
    }

    /// A signed message in a context of the engine.
    pub(super) fn seal_within(
        &self,
        context: &SnmpContext,
        pdu: &Pdu,
        id: i32,
        clock: (u32, u32),
        salt: u64,
    ) -> Result<Vec<u8>, SnmpError> {
        let mut scoped = scoped(context, pdu);
        let mut flags = IS_SIGNED | if asks(pdu) { IS_REPORTABLE } else { 0 };
        let mut salt_bytes = Vec::new();
        if let Some((protocol, key)) = &self.privacy {
            flags |= IS_ENCRYPTED;
            salt_bytes = salt.to_be_bytes().to_vec();
            protocol.encrypt(key, iv(clock, salt.to_be_bytes()), &mut scoped)?;
            scoped = ber::element(ber::OCTETS, &scoped);
        }
        let length = self.auth.sign(&self.auth_key, &[]).len();
        let head = MessageHead { id, flags, engine: &self.engine, clock, user: self.name.as_bytes() };
        let (mut bytes, at) = head.write(&vec![0; length], &salt_bytes, &scoped);
        let signature = self.auth.sign(&self.auth_key, &bytes);
        bytes[at..at + length].copy_from_slice(&signature);
        Ok(bytes)
    }

    /// PDU of a message, once the signature is seen to be the user's.
    ///
    /// # Errors
    /// The message is another's, not protected as this user's messages are, or not signed by this key.
    pub fn open(&self, message: &UserMessage<'_>) -> Result<Pdu, SnmpError> {
        self.open_within(message).map(|(_, pdu)| pdu)
    }

    /// PDU of a message with its context, which an answer has to repeat.
    pub(super) fn open_within(&self, message: &UserMessage<'_>) -> Result<(SnmpContext, Pdu), SnmpError> {
        if message.user != self.name.as_bytes() || message.engine != self.engine {
            return Err(SnmpError::User);
        }
        let level = if self.privacy.is_some() { SecurityLevel::Encrypted } else { SecurityLevel::Signed };
        // A report is signed at most, since whoever could not decrypt can't encrypt either.
        if message.level < SecurityLevel::Signed || message.level > level {
            return Err(SnmpError::Level);
        }
        let wanted = self.auth.sign(&self.auth_key, &message.unsigned());
        verify_slices_are_equal(&wanted, message.signature()).map_err(|_| SnmpError::Signature)?;
        let (context, pdu) = match (&self.privacy, message.level) {
            (Some((protocol, key)), SecurityLevel::Encrypted) => {
                let salt = message.salt.try_into().map_err(|_| SnmpError::Malformed("a salt of another size than eight bytes"))?;
                let mut text = message.scoped.to_vec();
                protocol.decrypt(key, iv(message.clock, salt), &mut text)?;
                let mut reader = BerReader::new(&text);
                scoped_pdu(reader.content(ber::SEQUENCE)?)?
            }
            _ => scoped_pdu(message.scoped)?,
        };
        let is_report = pdu.kind == super::PduKind::Report;
        if message.level < level && !is_report { Err(SnmpError::Level) } else { Ok((context, pdu)) }
    }
}

fn asks(pdu: &Pdu) -> bool {
    use super::PduKind::{Get, GetBulk, GetNext, Inform, Report, Response, Set, Trap};
    match pdu.kind {
        Get | GetNext | Set | GetBulk | Inform => true,
        Response | Trap | Report => false,
    }
}

fn iv((boots, time): (u32, u32), salt: [u8; 8]) -> [u8; 16] {
    let mut iv = [0; 16];
    iv[..4].copy_from_slice(&boots.to_be_bytes());
    iv[4..8].copy_from_slice(&time.to_be_bytes());
    iv[8..].copy_from_slice(&salt);
    iv
}

/// Part of an engine that a PDU is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SnmpContext {
    engine: Vec<u8>,
    name: Vec<u8>,
}

fn scoped(context: &SnmpContext, pdu: &Pdu) -> Vec<u8> {
    ber::sequence(&[&ber::element(ber::OCTETS, &context.engine), &ber::element(ber::OCTETS, &context.name), &pdu.write()])
}

fn scoped_pdu(content: &[u8]) -> Result<(SnmpContext, Pdu), SnmpError> {
    let mut fields = BerReader::new(content);
    let context = SnmpContext { engine: fields.content(ber::OCTETS)?.to_vec(), name: fields.content(ber::OCTETS)?.to_vec() };
    Ok((context, Pdu::read(&mut fields)?))
}

/// Fields of a message in front of the PDU.
struct MessageHead<'a> {
    id: i32,
    flags: u8,
    engine: &'a [u8],
    clock: (u32, u32),
    user: &'a [u8],
}

impl MessageHead<'_> {
    /// The message, and the place of the signature.
    fn write(&self, signature: &[u8], salt: &[u8], data: &[u8]) -> (Vec<u8>, usize) {
        let octets = |bytes: &[u8]| ber::element(ber::OCTETS, bytes);
        let salt = octets(salt);
        let numbers = [self.clock.0, self.clock.1].map(|number| ber::write_integer(number.into())).concat();
        let security = ber::sequence(&[&octets(self.engine), &numbers, &octets(self.user), &octets(signature), &salt]);
        let limits = ber::write_integer(LARGEST as i64);
        let global = ber::sequence(&[&ber::write_integer(self.id.into()), &limits, &octets(&[self.flags]), &ber::write_integer(USM)]);
        let bytes = ber::sequence(&[&ber::write_integer(V3), &global, &octets(&security), data]);
        let at = bytes.len() - data.len() - salt.len() - signature.len();
        (bytes, at)
    }
}

/// A message of v3 whose sender nobody has checked.
#[derive(Clone, Debug)]
pub struct UserMessage<'a> {
    bytes: &'a [u8],
    /// Place of the signature.
    at: (usize, usize),
    pub id: i32,
    pub level: SecurityLevel,
    pub wants_report: bool,
    pub engine: &'a [u8],
    pub user: &'a [u8],
    /// Boots and time of the engine.
    pub clock: (u32, u32),
    salt: &'a [u8],
    /// Content of the scoped PDU, or its encrypted bytes.
    scoped: &'a [u8],
}

impl<'a> UserMessage<'a> {
    /// Reads a message of v3.
    ///
    /// # Errors
    /// The bytes are none.
    pub fn read(bytes: &'a [u8]) -> Result<Self, SnmpError> {
        let mut message = BerReader::only(bytes)?;
        match message.integer()? {
            V3 => {}
            other => return Err(SnmpError::Version(other)),
        }
        let mut global = BerReader::new(message.content(ber::SEQUENCE)?);
        let id = i32::try_from(global.count()?).map_err(|_| SnmpError::Malformed("a number out of range"))?;
        global.count()?;
        let [flags] = global.content(ber::OCTETS)? else { return Err(SnmpError::Malformed("flags of another size than a byte")) };
        if global.integer()? != USM {
            return Err(SnmpError::Malformed("another security model than that of users"));
        }
        let mut security = BerReader::only(message.content(ber::OCTETS)?)?;
        let end = bytes.len() - message.left();
        let engine = security.content(ber::OCTETS)?;
        let clock = (security.count()?, security.count()?);
        let user = security.content(ber::OCTETS)?;
        let signature = security.content(ber::OCTETS)?;
        let to = end - security.left();
        let salt = security.content(ber::OCTETS)?;
        let level = match flags & (IS_SIGNED | IS_ENCRYPTED) {
            0 => SecurityLevel::Plain,
            IS_SIGNED => SecurityLevel::Signed,
            IS_ENCRYPTED => return Err(SnmpError::Level),
            _ => SecurityLevel::Encrypted,
        };
        let scoped = message.content(if level == SecurityLevel::Encrypted { ber::OCTETS } else { ber::SEQUENCE })?;
        let wants_report = flags & IS_REPORTABLE != 0;
        Ok(Self { bytes, at: (to - signature.len(), to), id, level, wants_report, engine, user, clock, salt, scoped })
    }

    /// PDU of a message that nobody signed: only reports are of use so.
    ///
    /// # Errors
    /// The message is encrypted, or holds no PDU.
    pub fn plain(&self) -> Result<Pdu, SnmpError> {
        if self.level == SecurityLevel::Encrypted { Err(SnmpError::Level) } else { scoped_pdu(self.scoped).map(|(_, pdu)| pdu) }
    }

    fn signature(&self) -> &[u8] {
        &self.bytes[self.at.0..self.at.1]
    }

    /// The message as it was signed: zeros in place of the signature.
    fn unsigned(&self) -> Vec<u8> {
        let mut bytes = self.bytes.to_vec();
        bytes[self.at.0..self.at.1].fill(0);
        bytes
    }

    /// An unsigned message to or from somebody whose keys are not known: a question for the engine, or the report that answers it.
    pub fn unsecured(engine: &[u8], clock: (u32, u32), pdu: &Pdu, id: i32) -> Vec<u8> {
        let flags = if asks(pdu) { IS_REPORTABLE } else { 0 };
        let context = SnmpContext { engine: engine.to_vec(), name: Vec::new() };
        MessageHead { id, flags, engine, clock, user: &[] }.write(&[], &[], &scoped(&context, pdu)).0
    }
}

/// Clock of an engine, as its last signed message told it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineClock {
    boots: u32,
    time: u32,
    /// Milliseconds, by the clock of whoever asks, at which the time was told.
    at: u64,
}

impl EngineClock {
    /// A clock that nobody has told yet.
    pub const fn unknown(at: u64) -> Self {
        Self { boots: 0, time: 0, at }
    }

    /// Boots and time at the moment `at`.
    pub fn read(&self, at: u64) -> (u32, u32) {
        let passed = u32::try_from(at.saturating_sub(self.at) / 1000).unwrap_or(u32::MAX);
        (self.boots, self.time.saturating_add(passed).min(i32::MAX as u32))
    }

    /// Takes the clock of a signed message, unless that is too old (RFC 3414, section 3.2, step 7 b).
    ///
    /// # Errors
    /// The message is from an earlier boot, or late.
    pub fn advance(&mut self, (boots, time): (u32, u32), at: u64) -> Result<(), SnmpError> {
        let (known, now) = self.read(at);
        if boots < known || boots >= i32::MAX as u32 || (boots == known && time.saturating_add(WINDOW) < now) {
            return Err(SnmpError::Time);
        }
        if boots > known || time > now {
            *self = Self { boots, time, at };
        }
        Ok(())
    }
}

/// Objects of the reports of the user-based security.
pub(super) fn report_number(pdu: &Pdu) -> Option<u32> {
    let reports = Oid::new(&[1, 3, 6, 1, 6, 3, 15, 1, 1]);
    pdu.bindings.first().and_then(|(oid, _)| oid.below(&reports)?.first().copied())
}

#[cfg(test)]
#[path = "usm/tests.rs"]
mod tests;
