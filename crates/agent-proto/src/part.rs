//! Parts of messages and artifacts (A2A 1.0, section 4.1.6): text, bytes, a link, or JSON. Fetches nothing.

use json::{Duplicates, Members};

/// A part with its description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePart {
    pub content: Content,
    pub filename: Option<String>,
    pub media_type: Option<String>,
}

/// The content of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Text(String),
    /// Bytes in Base64, as they came.
    Raw(String),
    Url(String),
    /// JSON of any kind, as it came.
    Data(String),
}

impl MessagePart {
    /// Makes a part without a description.
    pub fn new(content: Content) -> Self {
        Self { content, filename: None, media_type: None }
    }

    /// Reads a part; `None`: of no known kind, or of two kinds.
    pub fn read(text: &[u8]) -> Option<Self> {
        let part = Members::parse(text, Duplicates::RefuseTop).ok()?;
        let owned = |key| part.str(key).map(std::borrow::Cow::into_owned);
        let data = part.get("data").map(|raw| Content::Data(String::from_utf8_lossy(raw).into_owned()));
        let known = [owned("text").map(Content::Text), owned("raw").map(Content::Raw), owned("url").map(Content::Url), data];
        let mut known = known.into_iter().flatten();
        let (content, None) = (known.next()?, known.next()) else { return None };
        Some(Self { content, filename: owned("filename"), media_type: owned("mediaType") })
    }

    /// Reads an array of parts; those of unknown kinds are counted.
    pub fn read_all(raw: Option<&[u8]>) -> (Vec<Self>, usize) {
        let elements = raw.and_then(json::elements).unwrap_or_default();
        let count = elements.len();
        let parts: Vec<Self> = elements.into_iter().filter_map(Self::read).collect();
        let unknown = count - parts.len();
        (parts, unknown)
    }

    /// Writes the part as JSON.
    pub fn write(&self, out: &mut String) {
        let (key, value) = match &self.content {
            Content::Text(text) => ("text", json::quote(text)),
            Content::Raw(base64) => ("raw", json::quote(base64)),
            Content::Url(url) => ("url", json::quote(url)),
            Content::Data(raw) => ("data", raw.clone()),
        };
        out.push_str(&format!("{{\"{key}\":{value}"));
        for (key, text) in [("filename", &self.filename), ("mediaType", &self.media_type)] {
            if let Some(text) = text {
                out.push_str(&format!(",\"{key}\":{}", json::quote(text)));
            }
        }
        out.push('}');
    }

    /// Counts the bytes that the part holds.
    pub fn size(&self) -> usize {
        let content = match &self.content {
            Content::Text(text) | Content::Raw(text) | Content::Url(text) | Content::Data(text) => text.len(),
        };
        content + self.filename.as_ref().map_or(0, String::len) + self.media_type.as_ref().map_or(0, String::len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts() -> impl Strategy<Value = MessagePart> {
        let content = prop_oneof![
            any::<String>().prop_map(Content::Text),
            "[A-Za-z0-9+/]{0,12}".prop_map(Content::Raw),
            any::<String>().prop_map(Content::Url),
            any::<String>().prop_map(|text| Content::Data(json::quote(&text))),
            any::<u64>().prop_map(|number| Content::Data(format!("{{\"n\":{number}}}"))),
        ];
        (content, any::<Option<String>>(), any::<Option<String>>()).prop_map(|(content, filename, media_type)| MessagePart {
            content,
            filename,
            media_type,
        })
    }

    proptest! {
        #[test]
        fn a_written_part_is_read_as_itself(part in parts()) {
            let mut text = String::new();
            part.write(&mut text);
            prop_assert_eq!(MessagePart::read(text.as_bytes()), Some(part));
        }
    }

    #[test]
    fn a_part_of_two_kinds_is_counted_as_unknown() {
        let (parts, unknown) = MessagePart::read_all(Some(br#"[{"text":"a"},{"text":"a","url":"b"},{"file":"c"},1]"#));
        assert_eq!((parts, unknown), (vec![MessagePart::new(Content::Text("a".into()))], 3));
    }
}
