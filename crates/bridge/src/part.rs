//! Parts in the form of A2A, as in every extension, and the facts of a part beside its content. Knows no message.

use std::borrow::Cow;

use crate::binding::BindingId;
use crate::error::BridgeError;
use crate::message::{CanonicalPart, PartContent, Residue, ResiduePlace};
use crate::raw::{ObjectWriter, QuotedText};
use crate::reader::RawObject;
use crate::residue::{self, EXTENSION_KEY, OwnPlaces};

const PART: &str = "part";
const OWN: OwnPlaces<'static> = (BindingId::A2a, &[ResiduePlace::Part, ResiduePlace::PartMeta]);
const CONTENTS: [&str; 4] = ["text", "raw", "url", "data"];

/// Facts about a part without a place in the wire form.
#[derive(Debug, Default)]
pub(crate) struct PartExtension<'a> {
    /// Form of the content, where the wire form shows another.
    pub(crate) form: Option<Cow<'a, str>>,
    pub(crate) media_type: Option<QuotedText<'a>>,
    pub(crate) filename: Option<QuotedText<'a>>,
    pub(crate) artifact: Option<usize>,
    /// A member is made up.
    pub(crate) made: bool,
    pub(crate) residue: Vec<Residue<'a>>,
}

impl<'a> PartExtension<'a> {
    /// Reads the extension in the free map of a part.
    pub(crate) fn read(map: Option<&RawObject<'a>>, own: OwnPlaces<'_>) -> Result<Self, BridgeError> {
        let mut read = Self::default();
        let Some(found) = map.map(|map| map.object(EXTENSION_KEY, "part extension")).transpose()?.flatten() else { return Ok(read) };
        read.form = found.string("form")?.map(|form| Cow::Owned(form.text().into_owned()));
        read.media_type = found.string("mediaType")?;
        read.filename = found.string("filename")?;
        read.made = found.flag("made")?;
        read.artifact = found.get("artifact").map(index).transpose()?;
        residue::read(&mut read.residue, found.array("residue")?.unwrap_or_default(), own)?;
        Ok(read)
    }

    /// Checks for an empty extension.
    pub(crate) fn is_bare(&self) -> bool {
        self.form.is_none() && self.artifact.is_none() && self.residue.is_empty()
    }
}

fn index(raw: &[u8]) -> Result<usize, BridgeError> {
    let digits = std::str::from_utf8(raw).ok().filter(|digits| digits.len() <= 6 && digits.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or(BridgeError::malformed("part extension", "an artifact is named by its number"))
}

/// Writes the extension of a part, without the members `shown` by the wire form.
pub(crate) fn extension(part: &CanonicalPart<'_>, form: Option<&str>, shown: &[&str], own: OwnPlaces<'_>) -> ObjectWriter {
    let mut out = ObjectWriter::new();
    if let Some(form) = form {
        out.raw("form", json::quote(form).as_bytes());
    }
    if !shown.contains(&"mediaType") {
        out.text("mediaType", part.media_type.as_ref());
    }
    if !shown.contains(&"filename") {
        out.text("filename", part.filename.as_ref());
    }
    if let Some(artifact) = part.artifact.filter(|_| !shown.contains(&"artifact")) {
        out.raw("artifact", artifact.to_string().as_bytes());
    }
    if let Some(residue) = residue::write(&part.residue, own) {
        out.raw("residue", &residue);
    }
    out
}

/// Writes a part as A2A has it. `in_artifact`: the place shows the artifact.
pub(crate) fn write(part: &CanonicalPart<'_>, in_artifact: bool) -> Vec<u8> {
    let is_shown = in_artifact || part.artifact.is_none();
    if let PartContent::Native(BindingId::A2a, raw) = &part.content
        && is_shown
        && part.residue.is_empty()
    {
        return raw.to_vec();
    }
    let mut out = ObjectWriter::new();
    let mut form = None;
    match &part.content {
        PartContent::Text(text) => out.raw("text", text.raw()),
        PartContent::Bytes(bytes) => out.raw("raw", bytes.raw()),
        PartContent::Uri(uri) => out.raw("url", uri.raw()),
        PartContent::Json(raw) => out.raw("data", raw),
        PartContent::Native(binding, raw) => {
            form = Some(binding.id());
            out.raw("data", raw)
        }
    };
    out.text("filename", part.filename.as_ref()).text("mediaType", part.media_type.as_ref());
    out.members(residue::at(&part.residue, BindingId::A2a, ResiduePlace::Part));
    let shown: &[&str] = if is_shown { &["mediaType", "filename", "artifact"] } else { &["mediaType", "filename"] };
    let mut map = ObjectWriter::new();
    map.members(residue::at(&part.residue, BindingId::A2a, ResiduePlace::PartMeta));
    map.nested(EXTENSION_KEY, extension(part, form, shown, OWN));
    out.nested("metadata", map);
    out.finish()
}

/// Reads a part as A2A has it.
pub(crate) fn read<'a>(raw: &'a [u8]) -> Result<CanonicalPart<'a>, BridgeError> {
    let object = RawObject::read(raw, PART)?;
    let contents: Vec<&str> = CONTENTS.into_iter().filter(|key| object.get(key).is_some() || (*key == "data" && object.has(key))).collect();
    let [content] = contents[..] else {
        let native = CanonicalPart::new(PartContent::Native(BindingId::A2a, Cow::Borrowed(raw)));
        return if contents.is_empty() { Ok(native) } else { Err(BridgeError::malformed(PART, "a part holds one content")) };
    };
    let map = object.object("metadata", PART)?;
    let found = PartExtension::read(map.as_ref(), OWN)?;
    let text = || object.needed(content, "a text is expected as the content");
    let content = match content {
        "text" => PartContent::Text(text()?),
        "raw" => PartContent::Bytes(text()?),
        "url" => PartContent::Uri(text()?),
        _ => {
            let raw = Cow::Borrowed(object.value(content).unwrap_or(b"null"));
            match found.form.as_deref().map(BindingId::parse) {
                None => PartContent::Json(raw),
                Some(Some(binding)) if is_native(binding, &raw) => PartContent::Native(binding, raw),
                Some(_) => return Err(BridgeError::malformed(PART, "its data are not of the form named beside")),
            }
        }
    };
    let mut part = CanonicalPart::new(content);
    (part.filename, part.media_type) = (object.string("filename")?, object.string("mediaType")?);
    part.artifact = found.artifact;
    residue::keep(&mut part.residue, BindingId::A2a, ResiduePlace::Part, &object);
    if let Some(map) = map {
        residue::keep(&mut part.residue, BindingId::A2a, ResiduePlace::PartMeta, &map);
    }
    part.residue.extend(found.residue);
    Ok(part)
}

/// Checks for an object of a kind unknown here, so no known kind travels in disguise.
pub(crate) fn is_native(binding: BindingId, raw: &[u8]) -> bool {
    let Ok(object) = RawObject::read(raw, PART) else { return false };
    match binding {
        BindingId::A2a => CONTENTS.iter().all(|key| !object.has(key)),
        BindingId::Mcp => is_unknown_block(&object),
        BindingId::Ainp | BindingId::Slim | BindingId::Uacp => false,
    }
}

/// Checks for a content block of MCP of an unknown type.
pub(crate) fn is_unknown_block(object: &RawObject<'_>) -> bool {
    let known = ["text", "image", "audio", "resource_link", "resource"];
    object.string("type").ok().flatten().is_some_and(|kind| !known.contains(&&*kind.text()))
}
