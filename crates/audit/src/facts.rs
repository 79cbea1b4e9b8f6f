//! Facts of calls as text. Every call writes them, so it is done by hand here: byte for byte what serde makes of the same records, at a
//! third of its price. Does not write the facts of rarer events: serde does.

use json::push_quoted;

use crate::hash::Hash;
use crate::record::{Arguments, Intent, Outcome};

impl Intent<'_> {
    /// Appends the intent to `out`, as [`crate::record::Record::facts`] does.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut members = Members::begin(out);
        members.option(r#""approval":"#, self.approval.as_deref());
        if let Some(arguments) = &self.arguments {
            arguments.write(members.key(r#""arguments":"#));
        }
        members.number(r#""began":"#, self.began);
        members.text(r#""call":"#, &self.call);
        members.option(r#""decision":"#, self.decision.as_deref());
        if self.gated {
            members.key(r#""gated":"#).extend_from_slice(b"true");
        }
        members.text(r#""method":"#, &self.method);
        members.option(r#""mount":"#, self.mount.as_deref());
        members.text(r#""name":"#, &self.name);
        members.text(r#""principal":"#, &self.principal);
        members.text(r#""request":"#, &self.request);
        members.option(r#""trace":"#, self.trace.as_deref());
        members.finish();
    }
}

impl Outcome<'_> {
    /// Appends the outcome to `out`, as within the facts of [`crate::record::Record::Called`].
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut members = Members::begin(out);
        if let Some(bytes) = self.bytes {
            members.number(r#""bytes":"#, bytes);
        }
        if let Some(code) = self.code {
            members.key(r#""code":"#).extend_from_slice(itoa::Buffer::new().format(code).as_bytes());
        }
        members.text(r#""ending":"#, &self.ending);
        members.option(r#""reason":"#, self.reason.as_deref());
        members.number(r#""took":"#, self.took);
        members.finish();
    }
}

impl Arguments<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut members = Members::begin(out);
        spell(&self.hash, members.key(r#""hash":"#));
        for (key, raw) in [(r#""shape":"#, self.shape), (r#""value":"#, self.value)] {
            if let Some(raw) = raw {
                members.key(key).extend_from_slice(raw.0.as_bytes());
            }
        }
        members.finish();
    }
}

/// The hash as a JSON string.
pub(crate) fn spell(hash: &Hash, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(&hash.spelled());
    out.push(b'"');
}

/// An object being written. Keys come in order and ready-made: in quotes, with the colon.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    before: u8,
}

impl<'a> Members<'a> {
    fn begin(out: &'a mut Vec<u8>) -> Self {
        Self { out, before: b'{' }
    }

    /// Writes a key and gives the output for the value.
    fn key(&mut self, key: &str) -> &mut Vec<u8> {
        self.out.push(std::mem::replace(&mut self.before, b','));
        self.out.extend_from_slice(key.as_bytes());
        self.out
    }

    fn text(&mut self, key: &str, value: &str) {
        push_quoted(self.key(key), value);
    }

    fn option(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    fn number(&mut self, key: &str, value: u64) {
        self.key(key).extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }

    fn finish(self) {
        self.out.push(b'}');
    }
}
