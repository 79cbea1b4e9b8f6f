//! Tools that nodes offer each other: the messages of 7.1 and 7.2, and the bounds of a descriptor. Keeps no offer; [`offers`] does.
//!
//! An offer has one descriptor (decision 20), so that a list is several offers with one trace id. Fields of ours say who made an offer, when,
//! for which connection, and how many offers the list has; an envelope with an offer is signed.

pub mod offers;

use bytes::Bytes;
use json::{Duplicates, Members, quote};
use prost::Message as _;
use sha2::{Digest, Sha256};

use crate::error::AxcpError;
use crate::field::entries;
use crate::message::EnvelopePayload;

/// Bytes of a tool's id.
pub const MOST_TOOL_ID: usize = 255;
/// Bytes of a descriptor.
pub const MOST_DESCRIPTOR: usize = 64 * 1024;
/// Tools of one node.
pub const MOST_TOOLS: usize = 1024;
/// Scopes of one tool.
const MOST_SCOPES: usize = 64;

/// A word about the tools of a node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CapabilityMessage {
    #[prost(oneof = "CapabilityKind", tags = "1, 2, 3")]
    pub kind: Option<CapabilityKind>,
}

/// Kinds of words about tools.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum CapabilityKind {
    #[prost(message, boxed, tag = "1")]
    Offer(Box<CapabilityOffer>),
    #[prost(message, tag = "2")]
    Request(CapabilityRequest),
    #[prost(message, tag = "3")]
    Ack(CapabilityAck),
}

/// A tool that the sender offers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CapabilityOffer {
    /// Without one the list is empty.
    #[prost(message, optional, tag = "1")]
    pub desc: Option<CapabilityDescriptor>,
    /// Name of the key that signed the envelope.
    #[prost(string, tag = "1000")]
    pub sender_did: String,
    /// Milliseconds since 1970, alike in all offers of a list.
    #[prost(uint64, tag = "1001")]
    pub created_ms: u64,
    /// Id of the connection, which both ends compute.
    #[prost(bytes = "bytes", tag = "1002")]
    pub session: Bytes,
    /// Number of offers in the list, which takes the place of the list before; 0: the offer adds a tool, or changes one.
    #[prost(uint32, tag = "1003")]
    pub list_size: u32,
}

/// Wish for offers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CapabilityRequest {
    /// Ids of the wanted tools; none: all.
    #[prost(string, repeated, tag = "1")]
    pub ids: Vec<String>,
}

/// Offers that the sender has taken.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CapabilityAck {
    #[prost(string, repeated, tag = "1")]
    pub accepted: Vec<String>,
}

/// Checks that an offer has one descriptor within bounds.
fn check_offer(offer: &[u8]) -> Result<(), AxcpError> {
    let mut descriptors = 0;
    entries(offer, 1, |descriptor| {
        descriptors += 1;
        if descriptors > 1 {
            return Err(AxcpError::Malformed("an offer has more than one descriptor"));
        }
        // The length of a descriptor is judged with its list, which goes on without it.
        check_texts(descriptor, 6, MOST_TOOLS, usize::MAX)
    })
}

/// Checks the number of the texts in field `number`, and the bytes of each.
fn check_texts(message: &[u8], number: u32, most: usize, longest: usize) -> Result<(), AxcpError> {
    let mut count = 0;
    entries(message, number, |text| {
        count += 1;
        if count > most {
            return Err(AxcpError::TooLarge { what: "the entries of a list", most });
        }
        if text.len() > longest {
            return Err(AxcpError::TooLarge { what: "the bytes of an entry of a list", most: longest });
        }
        Ok(())
    })
}

/// A tool, described for others.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CapabilityDescriptor {
    #[prost(string, tag = "1")]
    pub tool_id: String,
    /// A JSON Schema.
    #[prost(string, tag = "2")]
    pub input_schema: String,
    /// A JSON Schema, or nothing.
    #[prost(string, tag = "3")]
    pub output_schema: String,
    /// Longest time of a call; 0: not told.
    #[prost(uint32, tag = "4")]
    pub timeout_ms: u32,
    #[prost(string, tag = "5")]
    pub resource_hint: String,
    #[prost(string, repeated, tag = "6")]
    pub auth_scope: Vec<String>,
    #[prost(string, tag = "7")]
    pub descriptor_version: String,
    /// Words of MCP for models.
    #[prost(string, tag = "1000")]
    pub description: String,
    /// Annotations of MCP, a JSON object, or nothing.
    #[prost(string, tag = "1001")]
    pub annotations: String,
}

impl CapabilityMessage {
    /// Reads the content of an envelope.
    ///
    /// # Errors
    /// When the bytes are no message, or have more entries than a node holds.
    pub fn read(content: &Bytes) -> Result<Option<CapabilityKind>, AxcpError> {
        let mut contents = 0;
        for number in 1..=3 {
            entries(content, number, |word| {
                contents += 1;
                // The library would put all of them together.
                if contents > 1 {
                    return Err(AxcpError::Malformed("a word about tools has more than one content"));
                }
                if number == 1 { check_offer(word) } else { check_texts(word, 1, MOST_TOOLS, MOST_TOOL_ID) }
            })?;
        }
        let read = Self::decode(content.clone()).map_err(|_| AxcpError::Malformed("the content of the envelope is not of its type"))?;
        Ok(read.kind)
    }
}

impl CapabilityKind {
    /// Writes the word as the content of an envelope.
    pub fn payload(self) -> EnvelopePayload {
        EnvelopePayload::Capability(CapabilityMessage { kind: Some(self) }.encode_to_vec().into())
    }
}

impl CapabilityDescriptor {
    /// Describes a tool by its definition in MCP. `None`: the definition has no name or no schema, or is too long to be offered.
    pub fn of_tool(definition: &[u8]) -> Option<Self> {
        let members = Members::parse(definition, Duplicates::RefuseTop).ok()?;
        let raw = |key: &str| members.get(key).and_then(|raw| std::str::from_utf8(raw).ok()).unwrap_or_default().to_owned();
        let version: String = Sha256::digest(definition).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let made = Self {
            tool_id: members.str("name")?.into_owned(),
            input_schema: raw("inputSchema"),
            output_schema: raw("outputSchema"),
            descriptor_version: version,
            description: members.str("description").unwrap_or_default().into_owned(),
            annotations: raw("annotations"),
            ..Self::default()
        };
        made.check().is_ok().then_some(made)
    }

    /// Checks the bounds and the form of a descriptor.
    ///
    /// # Errors
    /// When the id is no name of a tool, or a schema is no JSON object, or the whole is too long.
    pub fn check(&self) -> Result<(), AxcpError> {
        if self.encoded_len() > MOST_DESCRIPTOR {
            return Err(AxcpError::TooLarge { what: "the bytes of a descriptor", most: MOST_DESCRIPTOR });
        }
        let is_name =
            !self.tool_id.is_empty() && self.tool_id.len() <= MOST_TOOL_ID && self.tool_id.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_name {
            return Err(AxcpError::Malformed("a tool id has 1 to 255 characters of ASCII, and no space"));
        }
        if self.auth_scope.len() > MOST_SCOPES {
            return Err(AxcpError::TooLarge { what: "the scopes of a tool", most: MOST_SCOPES });
        }
        let is_object = |text: &str| Members::parse(text.as_bytes(), Duplicates::RefuseDeep).is_ok();
        if !is_object(&self.input_schema) {
            return Err(AxcpError::Malformed("the input schema of a tool is no JSON object"));
        }
        if [&self.output_schema, &self.annotations].into_iter().any(|text| !text.is_empty() && !is_object(text)) {
            return Err(AxcpError::Malformed("the output schema or the annotations of a tool are no JSON object"));
        }
        Ok(())
    }

    /// Bytes that a node holds for the descriptor.
    pub fn held(&self) -> usize {
        // Texts have room of their own behind what the struct has.
        size_of::<Self>() + self.encoded_len() + self.auth_scope.len() * size_of::<String>()
    }

    /// Writes the definition of the tool in MCP. The schemas are the bytes that came.
    pub fn definition(&self) -> String {
        let mut written = format!("{{\"name\":{}", quote(&self.tool_id));
        if !self.description.is_empty() {
            written += &format!(",\"description\":{}", quote(&self.description));
        }
        written += &format!(",\"inputSchema\":{}", self.input_schema);
        for (key, text) in [("outputSchema", &self.output_schema), ("annotations", &self.annotations)] {
            if !text.is_empty() {
                written += &format!(",\"{key}\":{text}");
            }
        }
        written + "}"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: &str = r#"{"name":"plant.read","description":"Reads \"it\".","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"title":"T"}"#;

    /// Bytes worked out by hand from the numbers and types of the schema.
    #[test]
    fn xc_21_every_member_has_its_number() {
        let desc = CapabilityDescriptor {
            tool_id: "t".into(),
            input_schema: "{}".into(),
            output_schema: "{}".into(),
            timeout_ms: 5,
            resource_hint: "gpu".into(),
            auth_scope: vec!["r".into()],
            descriptor_version: "1".into(),
            description: "d".into(),
            annotations: "{}".into(),
        };
        let text = b"\x0a\x01t\x12\x02{}\x1a\x02{}\x20\x05\x2a\x03gpu\x32\x01r\x3a\x011\xc2\x3e\x01d\xca\x3e\x02{}";
        assert_eq!(desc.encode_to_vec(), text);
        let offer = CapabilityOffer { desc: None, sender_did: "d".into(), created_ms: 1, session: Bytes::from_static(b"s"), list_size: 2 };
        assert_eq!(offer.encode_to_vec(), b"\xc2\x3e\x01d\xc8\x3e\x01\xd2\x3e\x01s\xd8\x3e\x02");
        let ack = CapabilityKind::Ack(CapabilityAck { accepted: vec!["t".into()] });
        let EnvelopePayload::Capability(content) = ack.clone().payload() else { panic!("no capability") };
        assert_eq!(content, b"\x1a\x03\x0a\x01t".as_slice());
        assert_eq!(CapabilityMessage::read(&content), Ok(Some(ack)));
        let request = CapabilityKind::Request(CapabilityRequest { ids: vec!["t".into()] });
        let EnvelopePayload::Capability(content) = request.payload() else { panic!("no capability") };
        assert_eq!(content, b"\x12\x03\x0a\x01t".as_slice());
    }

    #[test]
    fn xc_21_a_descriptor_has_what_the_definition_says() {
        let described = CapabilityDescriptor::of_tool(TOOL.as_bytes()).unwrap();
        assert_eq!(
            (&*described.tool_id, &*described.input_schema, &*described.description),
            ("plant.read", r#"{"type":"object"}"#, "Reads \"it\".")
        );
        assert_eq!(described.descriptor_version.len(), 16);
        let without_title = TOOL.replace(r#","title":"T""#, "");
        assert_eq!(described.definition(), without_title);
        for bad in ["{}", "[]", r#"{"name":"a"}"#, r#"{"name":"a b","inputSchema":{}}"#] {
            assert_eq!(CapabilityDescriptor::of_tool(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn xc_21_a_descriptor_without_sense_is_refused() {
        let good = CapabilityDescriptor::of_tool(TOOL.as_bytes()).unwrap();
        let cases = [
            CapabilityDescriptor { tool_id: "a\u{202e}b".into(), ..good.clone() },
            CapabilityDescriptor { tool_id: "a".repeat(MOST_TOOL_ID + 1), ..good.clone() },
            CapabilityDescriptor { input_schema: "{\"a\":1},\"x\":{".into(), ..good.clone() },
            CapabilityDescriptor { output_schema: "7".into(), ..good.clone() },
            CapabilityDescriptor { annotations: "{\"a\":1,\"a\":2}".into(), ..good.clone() },
        ];
        for bad in cases {
            assert_eq!(bad.check().unwrap_err().code().number(), 8, "{bad:?}");
        }
        let long = CapabilityDescriptor { description: "x".repeat(MOST_DESCRIPTOR), ..good.clone() };
        assert_eq!(long.check().unwrap_err().code().number(), 7);
        assert_eq!(CapabilityDescriptor { auth_scope: vec![String::new(); 65], ..good }.check().unwrap_err().code().number(), 7);
    }

    #[test]
    fn xc_21_lists_are_counted_before_they_are_read() {
        let content = |kind: CapabilityKind| CapabilityMessage { kind: Some(kind) }.encode_to_vec().into();
        let many = |count: usize| {
            let ids = vec![String::new(); count];
            let kinds = [
                CapabilityKind::Request(CapabilityRequest { ids: ids.clone() }),
                CapabilityKind::Ack(CapabilityAck { accepted: ids.clone() }),
                CapabilityKind::Offer(Box::new(CapabilityOffer {
                    desc: Some(CapabilityDescriptor { auth_scope: ids, ..CapabilityDescriptor::default() }),
                    ..CapabilityOffer::default()
                })),
            ];
            kinds.map(|kind| CapabilityMessage::read(&content(kind)).is_ok())
        };
        assert_eq!((many(MOST_TOOLS), many(MOST_TOOLS + 1)), ([true; 3], [false; 3]));
        let long = CapabilityKind::Ack(CapabilityAck { accepted: vec!["a".repeat(MOST_TOOL_ID + 1)] });
        assert_eq!(CapabilityMessage::read(&content(long)).unwrap_err().code().number(), 7);
    }

    /// Each piece is a field of a message; a library of protobuf makes one value of pieces with the same number.
    #[test]
    fn xc_21_a_word_has_one_content() {
        let read = |content: &'static [u8]| CapabilityMessage::read(&Bytes::from_static(content));
        assert!(read(b"\x12\x03\x0a\x01a").is_ok() && read(b"\x0a\x05\x0a\x03\x0a\x01a").is_ok());
        for bad in [
            b"\x12\x03\x0a\x01a\x12\x03\x0a\x01b".as_slice(),
            b"\x1a\x03\x0a\x01a\x1a\x00",
            b"\x12\x00\x1a\x00",
            b"\x0a\x00\x12\x00",
            b"\x0a\x0a\x0a\x03\x0a\x01a\x0a\x03\x0a\x01b",
        ] {
            assert_eq!(read(bad).unwrap_err().code().number(), 8, "{bad:?}");
        }
    }
}
