//! Content blocks of results, and structured content. Knows no result around them.

use std::borrow::Cow;

use super::{MCP, answer};
use crate::binding::BindingId;
use crate::error::BridgeError;
use crate::message::{CanonicalMessage, CanonicalPart, PartContent, ResiduePlace};
use crate::part::{PartExtension, extension, is_native, is_unknown_block};
use crate::raw::{ObjectWriter, QuotedText};
use crate::reader::{MOST_DEPTH, RawObject, depth};
use crate::residue::{self, EXTENSION_KEY, OwnPlaces};

const BLOCK: &str = "result.content";
/// Form of a part not shown by a block. Parts of unknown kinds have the form of their binding.
const JSON: &str = "json";

/// Reads the content of a result, and the structured content unless a block is a copy of it.
pub(super) fn read_content<'a>(message: &mut CanonicalMessage<'a>, result: &RawObject<'a>) -> Result<(), BridgeError> {
    let structured = result.value("structuredContent");
    let mut is_copied = false;
    for raw in result.array("content")?.unwrap_or_default() {
        let part = read(raw)?;
        is_copied |= matches!(&part.content, PartContent::Json(json) if Some(&**json) == structured);
        message.parts.push(part);
    }
    if let Some(raw) = structured.filter(|_| !is_copied) {
        message.parts.push(CanonicalPart::new(PartContent::Json(Cow::Borrowed(raw))));
    }
    Ok(())
}

/// Writes the content of a result. The first object among the parts is structured content as well, for programs.
pub(super) fn write_content(message: &CanonicalMessage<'_>, result: &mut ObjectWriter) {
    result.raw("content", &answer::content_of(message.parts.iter().map(write)));
    let objects = message.parts.iter().filter_map(|part| match &part.content {
        PartContent::Json(raw) if raw.starts_with(b"{") => Some(raw),
        PartContent::Text(_) | PartContent::Bytes(_) | PartContent::Uri(_) | PartContent::Json(_) | PartContent::Native(..) => None,
    });
    if let Some(raw) = objects.into_iter().next() {
        result.raw("structuredContent", raw);
    }
}

/// The objects of a block.
fn places_of(is_resource: bool) -> OwnPlaces<'static> {
    const PLACES: [ResiduePlace; 3] = [ResiduePlace::Part, ResiduePlace::PartMeta, ResiduePlace::Resource];
    (MCP, &PLACES[..if is_resource { 3 } else { 2 }])
}

/// Reads a link or an embedded resource that stands alone; `None`: the value is another.
pub(crate) fn resource(raw: &[u8]) -> Option<CanonicalPart<'_>> {
    let kind = RawObject::read(raw, BLOCK).ok()?.string("type").ok()??;
    if matches!(&*kind.text(), "resource_link" | "resource") { read(raw).ok() } else { None }
}

fn read(raw: &[u8]) -> Result<CanonicalPart<'_>, BridgeError> {
    let block = RawObject::read(raw, BLOCK)?;
    let meta = block.object("_meta", BLOCK)?;
    let is_resource = block.get("type") == Some(b"\"resource\"");
    let found = PartExtension::read(meta.as_ref(), places_of(is_resource))?;
    let kind = block.needed("type", "a block has a type")?;
    let kind = kind.text();
    if is_unknown_block(&block) && found.is_bare() {
        return Ok(CanonicalPart::new(PartContent::Native(MCP, Cow::Borrowed(raw))));
    }
    let resource = block.object("resource", BLOCK)?;
    let mut part = match (&*kind, &resource) {
        ("text", None) => text(&block, &found)?,
        ("image" | "audio", None) => bytes(block.needed("data", "bytes are expected")?, block.needed("mimeType", "a type is expected")?),
        ("resource_link", None) => link(&block, &found)?,
        ("resource", Some(resource)) => embedded(resource)?,
        _ => return Err(BridgeError::malformed(BLOCK, "its members are not those of its type")),
    };
    let shown: &[&str] = match &*kind {
        "text" => &["type", "text"],
        "image" | "audio" => &["type", "data", "mimeType"],
        "resource_link" => &["type", "uri", "name", "mimeType"],
        _ => &["type", "resource"],
    };
    let is_foreign =
        block.rest(&[shown, &["_meta"]].concat()).iter().any(|member| residue::known(MCP, ResiduePlace::Part).contains(&member.key()));
    if is_foreign {
        return Err(BridgeError::malformed(BLOCK, "its members are not those of its type"));
    }
    part.media_type = found.media_type.or(part.media_type);
    part.filename = found.filename.or(part.filename);
    part.artifact = found.artifact;
    residue::keep(&mut part.residue, MCP, ResiduePlace::Part, &block);
    if let Some(meta) = &meta {
        residue::keep(&mut part.residue, MCP, ResiduePlace::PartMeta, meta);
    }
    if let Some(resource) = resource.filter(|_| !found.made) {
        residue::keep(&mut part.residue, MCP, ResiduePlace::Resource, &resource);
    }
    part.residue.extend(found.residue);
    Ok(part)
}

fn text<'a>(block: &RawObject<'a>, found: &PartExtension<'a>) -> Result<CanonicalPart<'a>, BridgeError> {
    let text = block.needed("text", "a text is expected")?;
    let json = || {
        let raw = text.text().into_owned().into_bytes();
        let is_sound =
            depth(&raw) <= MOST_DEPTH && json::check(&raw, json::Duplicates::RefuseDeep).is_ok_and(|span| span.len() == raw.len());
        if is_sound { Ok(raw) } else { Err(BridgeError::malformed(BLOCK, "a block that is marked as JSON holds none")) }
    };
    let content = match found.form.as_deref() {
        None => PartContent::Text(text),
        Some(JSON) => PartContent::Json(Cow::Owned(json()?)),
        Some(form) => {
            let (binding, raw) = (BindingId::parse(form), json()?);
            let binding = binding.filter(|binding| is_native(*binding, &raw));
            PartContent::Native(binding.ok_or(BridgeError::malformed(BLOCK, "a block is not of the form named beside"))?, Cow::Owned(raw))
        }
    };
    Ok(CanonicalPart::new(content))
}

fn bytes<'a>(data: QuotedText<'a>, media_type: QuotedText<'a>) -> CanonicalPart<'a> {
    CanonicalPart { media_type: Some(media_type), ..CanonicalPart::new(PartContent::Bytes(data)) }
}

fn link<'a>(block: &RawObject<'a>, found: &PartExtension<'a>) -> Result<CanonicalPart<'a>, BridgeError> {
    let name = block.needed("name", "a link has a name")?;
    let mut part = CanonicalPart::new(PartContent::Uri(block.needed("uri", "a link has an address")?));
    part.media_type = block.string("mimeType")?;
    part.filename = (!found.made).then_some(name);
    Ok(part)
}

fn embedded<'a>(resource: &RawObject<'a>) -> Result<CanonicalPart<'a>, BridgeError> {
    let content = match (resource.string("text")?, resource.string("blob")?) {
        (Some(text), None) => PartContent::Text(text),
        (None, Some(blob)) => PartContent::Bytes(blob),
        _ => return Err(BridgeError::malformed(BLOCK, "a resource holds a text or bytes")),
    };
    Ok(CanonicalPart { media_type: resource.string("mimeType")?, ..CanonicalPart::new(content) })
}

/// Writes a part as a block.
fn write(part: &CanonicalPart<'_>) -> Vec<u8> {
    let of_resource = residue::at(&part.residue, MCP, ResiduePlace::Resource);
    let media = part.media_type.as_ref().map(|media_type| media_type.text().into_owned()).unwrap_or_default();
    let mut out = ObjectWriter::new();
    let (mut form, mut shown, mut is_made): (Option<&str>, &[&str], bool) = (None, &[], false);
    match &part.content {
        PartContent::Native(binding, raw) if *binding == MCP && part.is_plain() => return raw.to_vec(),
        PartContent::Text(text) if of_resource.is_empty() => {
            out.raw("type", b"\"text\"").text("text", Some(text));
        }
        PartContent::Bytes(data) if of_resource.is_empty() && (media.starts_with("image/") || media.starts_with("audio/")) => {
            shown = &["mediaType"];
            out.raw("type", json::quote(&media[..5]).as_bytes()).text("data", Some(data)).text("mimeType", part.media_type.as_ref());
        }
        PartContent::Text(inner) | PartContent::Bytes(inner) => {
            let key = if matches!(part.content, PartContent::Text(_)) { "text" } else { "blob" };
            is_made = of_resource.is_empty();
            shown = &["mediaType"];
            let mut resource = ObjectWriter::new();
            resource.text(key, Some(inner)).text("mimeType", part.media_type.as_ref()).members(of_resource);
            if is_made {
                resource.raw("uri", b"\"urn:io.banyan:part\"");
            }
            out.raw("type", b"\"resource\"").raw("resource", &resource.finish());
        }
        PartContent::Uri(uri) => {
            shown = &["mediaType", "filename"];
            is_made = part.filename.is_none();
            out.raw("type", b"\"resource_link\"").text("uri", Some(uri)).text("name", Some(part.filename.as_ref().unwrap_or(uri)));
            out.text("mimeType", part.media_type.as_ref());
        }
        PartContent::Json(raw) | PartContent::Native(_, raw) => {
            form = Some(if let PartContent::Native(binding, _) = &part.content { binding.id() } else { JSON });
            out.raw("type", b"\"text\"").raw("text", json::quote(&String::from_utf8_lossy(raw)).as_bytes());
        }
    }
    out.members(residue::at(&part.residue, MCP, ResiduePlace::Part));
    let mut meta = ObjectWriter::new();
    meta.members(residue::at(&part.residue, MCP, ResiduePlace::PartMeta));
    let is_resource = matches!(part.content, PartContent::Text(_) | PartContent::Bytes(_));
    let mut carried = extension(part, form, shown, places_of(!of_resource.is_empty() && is_resource));
    if is_made {
        carried.raw("made", b"true");
    }
    meta.nested(EXTENSION_KEY, carried);
    out.nested("_meta", meta);
    out.finish()
}
