//! The extension of a message: one object under [`EXTENSION_KEY`] with every field for which a binding has no place.
//! Knows no binding: a codec names the fields that it writes itself, and no peer can set such a field here.

use std::borrow::Cow;

use crate::binding::BindingId;
use crate::error::BridgeError;
use crate::field::CanonicalField;
use crate::loss::{Loss, LossFate, Severity};
use crate::message::{ArtifactHead, CanonicalMessage, Failure, FailureClass, WorkState};
use crate::part;
use crate::raw::{ObjectWriter, QuotedText, array};
use crate::reader::RawObject;
use crate::residue::{self, EXTENSION_KEY, OwnPlaces};

const AT: &str = "extension";
/// Most gateways that a message names: far above every limit of hops.
const MOST_HOPS: usize = 64;
/// Member of an extension beside an answer that looks like another kind of message.
const KIND: &str = "kind";
const RESPONSE: &[u8] = b"\"response\"";

/// Marks an extension as that of an answer.
pub(crate) fn mark_response(out: &mut ObjectWriter) {
    out.raw(KIND, RESPONSE);
}

/// Losses of one message on its way out.
#[derive(Debug, Default)]
pub(crate) struct LossReport {
    pub(crate) losses: Vec<Loss>,
    /// Names of fields that were made up.
    made: Vec<CanonicalField>,
}

impl LossReport {
    pub(crate) fn make(&mut self, field: CanonicalField, severity: Severity, note: &'static str) {
        self.made.push(field);
        self.note(field, LossFate::Synthesized, severity, note);
    }

    pub(crate) fn note(&mut self, field: CanonicalField, fate: LossFate, severity: Severity, note: &'static str) {
        self.losses.push(Loss { field, path: field.name(), fate, severity, note });
    }
}

/// Makes the error of a fatal loss.
pub(crate) fn fatal(field: CanonicalField, note: &'static str) -> BridgeError {
    BridgeError::SemanticLoss(Loss { field, path: field.name(), fate: LossFate::Dropped, severity: Severity::Fatal, note })
}

/// Writes all fields but the `native` ones, and reports each. Residue at the `own` places is put back by the codec.
pub(crate) fn write(
    message: &CanonicalMessage<'_>,
    native: &[CanonicalField],
    own: OwnPlaces<'_>,
    report: &mut LossReport,
) -> ObjectWriter {
    let mut out = ObjectWriter::new();
    for (field, raw) in fields(message, own) {
        if native.contains(&field) {
            continue;
        }
        out.raw(field.name(), &raw);
        let (severity, note) = weight(field);
        report.note(field, LossFate::Carried, severity, note);
    }
    if message.wants.push_secret {
        report.note(CanonicalField::PushSecret, LossFate::Dropped, Severity::Warn, "credentials of a callback stay at this gate");
    }
    if !report.made.is_empty() {
        let names = report.made.iter().map(|field| json::quote(field.name()).into_bytes());
        out.raw("made", &array(names));
    }
    out
}

/// Warns of fields on which a receiver acts, since not every receiver reads the extension.
fn weight(field: CanonicalField) -> (Severity, &'static str) {
    const LEFT_OUT: [(CanonicalField, &str); 4] = [
        (CanonicalField::Parts, "content travels in the extension"),
        (CanonicalField::Push, "the receiver sends no news by itself"),
        (CanonicalField::Immediate, "the receiver answers when the work is over"),
        (CanonicalField::Modes, "the receiver chooses the form of its answer"),
    ];
    let found = LEFT_OUT.iter().find(|(known, _)| *known == field);
    found.map_or((Severity::Info, "travels in the extension"), |(_, note)| (Severity::Warn, note))
}

/// Every field that is present, as the extension has it.
fn fields<'m>(message: &'m CanonicalMessage<'_>, own: OwnPlaces<'_>) -> Vec<(CanonicalField, Cow<'m, [u8]>)> {
    let mut found: Vec<(CanonicalField, Cow<'m, [u8]>)> = Vec::new();
    let (wants, trail) = (&message.wants, &message.trail);
    let texts = [
        (CanonicalField::Op, &message.op),
        (CanonicalField::Id, &message.id),
        (CanonicalField::Conversation, &message.conversation),
        (CanonicalField::Task, &message.task),
        (CanonicalField::Push, &wants.push),
        (CanonicalField::Parent, &trail.parent),
        (CanonicalField::Callback, &trail.callback),
    ];
    found.extend(texts.into_iter().filter_map(|(field, text)| Some((field, Cow::Borrowed(text.as_ref()?.raw())))));
    let raws =
        [(CanonicalField::Modes, &wants.modes), (CanonicalField::Progress, &message.progress), (CanonicalField::Total, &message.total)];
    found.extend(raws.into_iter().filter_map(|(field, raw)| Some((field, Cow::Borrowed(&**raw.as_ref()?)))));
    let flags = [(CanonicalField::Stream, wants.stream), (CanonicalField::Immediate, wants.immediate)];
    found.extend(flags.into_iter().filter(|(_, is_set)| *is_set).map(|(field, _)| (field, Cow::Borrowed(&b"true"[..]))));
    let mut made = |field, raw: Option<Vec<u8>>| found.extend(raw.map(|raw| (field, Cow::Owned(raw))));
    made(CanonicalField::State, message.state.map(|state| json::quote(state.name()).into_bytes()));
    made(CanonicalField::Ects, (!trail.ects.is_empty()).then(|| array(trail.ects.iter().map(QuotedText::raw))));
    made(CanonicalField::Hops, (!trail.hops.is_empty()).then(|| array(trail.hops.iter().map(QuotedText::raw))));
    made(
        CanonicalField::Artifacts,
        (!message.artifacts.is_empty()).then(|| array(message.artifacts.iter().map(|head| head_of(head, None)))),
    );
    made(CanonicalField::Parts, (!message.parts.is_empty()).then(|| array(message.parts.iter().map(|one| part::write(one, false)))));
    if let Some(failure) = &message.failure {
        made(CanonicalField::Class, Some(json::quote(failure.class.name()).into_bytes()));
        made(CanonicalField::RetryAfter, failure.retry_after.map(|after| after.to_string().into_bytes()));
        made(CanonicalField::Code, failure.code.as_ref().map(|(of, raw)| code(*of, raw)));
    }
    made(CanonicalField::Residue, residue::write(&message.residue, own));
    found
}

fn code(binding: BindingId, raw: &[u8]) -> Vec<u8> {
    let mut out = ObjectWriter::new();
    out.raw("binding", json::quote(binding.id()).as_bytes()).raw("code", raw);
    out.finish()
}

/// Writes an artifact as A2A has it, with these raw parts.
pub(crate) fn head_of(head: &ArtifactHead<'_>, parts: Option<&[u8]>) -> Vec<u8> {
    let mut out = ObjectWriter::new();
    out.raw("artifactId", head.id.raw()).text("name", head.name.as_ref()).text("description", head.description.as_ref());
    if let Some(parts) = parts {
        out.raw("parts", parts);
    }
    out.members(&head.rest);
    out.finish()
}

/// Reads an artifact without its parts.
pub(crate) fn read_head<'a>(object: &RawObject<'a>) -> Result<ArtifactHead<'a>, BridgeError> {
    Ok(ArtifactHead {
        id: object.needed("artifactId", "an artifact has an id")?,
        name: object.string("name")?,
        description: object.string("description")?,
        rest: object.rest(&["artifactId", "name", "description", "parts"]),
    })
}

/// The extension of a received message, and the names of made-up fields.
pub(crate) struct Restoring<'a> {
    found: RawObject<'a>,
    made: Vec<String>,
}

impl<'a> Restoring<'a> {
    /// Takes the extension out of a free map.
    pub(crate) fn open(map: Option<&RawObject<'a>>) -> Result<Option<Self>, BridgeError> {
        let Some(found) = map.map(|map| map.object(EXTENSION_KEY, AT)).transpose()?.flatten() else { return Ok(None) };
        Self::alone(found).map(Some)
    }

    /// Tells if a field of the wire form was made up.
    pub(crate) fn is_made(&self, field: CanonicalField) -> bool {
        self.made.iter().any(|name| name == field.name())
    }

    /// Opens an extension that stands alone.
    pub(crate) fn alone(found: RawObject<'a>) -> Result<Self, BridgeError> {
        let made = found.array("made")?.unwrap_or_default();
        let made = made.into_iter().filter_map(json::as_str).map(Cow::into_owned).collect();
        Ok(Self { found, made })
    }

    /// Tells if the message is an answer, whatever kind its wire form shows.
    pub(crate) fn is_response(&self) -> bool {
        self.found.get(KIND) == Some(RESPONSE)
    }

    /// The raw elements of a member.
    pub(crate) fn has(&self, field: CanonicalField) -> bool {
        self.found.has(field.name())
    }

    /// Puts the fields back, but for `native` ones.
    pub(crate) fn restore(
        &self,
        message: &mut CanonicalMessage<'a>,
        native: &[CanonicalField],
        own: OwnPlaces<'_>,
    ) -> Result<(), BridgeError> {
        let is_ours = |field: &CanonicalField| !native.contains(field);
        let text = |field: CanonicalField| if is_ours(&field) { self.found.string(field.name()) } else { Ok(None) };
        let raw = |field: CanonicalField| self.found.get(field.name()).filter(|_| is_ours(&field)).map(Cow::Borrowed);
        let flag = |field: CanonicalField| if is_ours(&field) { self.found.flag(field.name()) } else { Ok(false) };
        let list = |field: CanonicalField| if is_ours(&field) { self.found.array(field.name()) } else { Ok(None) };
        let set = |into: &mut Option<QuotedText<'a>>, field| -> Result<(), BridgeError> {
            if let Some(found) = text(field)? {
                *into = Some(found);
            }
            Ok(())
        };
        set(&mut message.op, CanonicalField::Op)?;
        set(&mut message.id, CanonicalField::Id)?;
        set(&mut message.conversation, CanonicalField::Conversation)?;
        set(&mut message.task, CanonicalField::Task)?;
        set(&mut message.wants.push, CanonicalField::Push)?;
        set(&mut message.trail.parent, CanonicalField::Parent)?;
        set(&mut message.trail.callback, CanonicalField::Callback)?;
        message.wants.stream |= flag(CanonicalField::Stream)?;
        message.wants.immediate |= flag(CanonicalField::Immediate)?;
        message.wants.modes = raw(CanonicalField::Modes).or(message.wants.modes.take());
        message.progress = raw(CanonicalField::Progress).or(message.progress.take());
        message.total = raw(CanonicalField::Total).or(message.total.take());
        if let Some(state) = text(CanonicalField::State)? {
            message.state = Some(WorkState::parse(&state.text()).ok_or(BridgeError::malformed(AT, "its state is unknown"))?);
        }
        for ect in list(CanonicalField::Ects)?.unwrap_or_default() {
            message.trail.ects.push(QuotedText::read(ect).ok_or(BridgeError::malformed(AT, "an execution context token is a text"))?);
        }
        let hops = list(CanonicalField::Hops)?.unwrap_or_default();
        if hops.len() > MOST_HOPS {
            return Err(BridgeError::TooLarge);
        }
        for hop in hops {
            message.trail.hops.push(QuotedText::read(hop).ok_or(BridgeError::malformed(AT, "a gateway is named by a text"))?);
        }
        for head in list(CanonicalField::Artifacts)?.unwrap_or_default() {
            message.artifacts.push(read_head(&RawObject::read(head, AT)?)?);
        }
        if let Some(parts) = list(CanonicalField::Parts)? {
            message.parts = parts.into_iter().map(part::read).collect::<Result<_, _>>()?;
        }
        if let Some(failure) = &mut message.failure {
            self.restore_failure(failure)?;
        }
        residue::read(&mut message.residue, list(CanonicalField::Residue)?.unwrap_or_default(), own)
    }

    fn restore_failure(&self, failure: &mut Failure<'a>) -> Result<(), BridgeError> {
        if let Some(class) = self.found.string(CanonicalField::Class.name())? {
            failure.class = FailureClass::parse(&class.text()).ok_or(BridgeError::malformed(AT, "its class is unknown"))?;
        }
        if let Some(raw) = self.found.get(CanonicalField::RetryAfter.name()) {
            let after = std::str::from_utf8(raw).ok().and_then(|digits| digits.parse().ok());
            failure.retry_after = Some(after.ok_or(BridgeError::malformed(AT, "milliseconds are a whole number"))?);
        }
        if self.is_made(CanonicalField::Code) {
            failure.code = None;
        }
        if let Some(code) = self.found.object(CanonicalField::Code.name(), AT)? {
            let binding = code.needed("binding", "a code has a binding")?;
            let binding = BindingId::parse(&binding.text()).ok_or(BridgeError::malformed(AT, "the binding of its code is unknown"))?;
            let raw = code.get("code").ok_or(BridgeError::malformed(AT, "no code is given"))?;
            failure.code = Some((binding, Cow::Borrowed(raw)));
        }
        Ok(())
    }
}

/// Brings parts and residue into their order, and refuses parts of a missing artifact.
pub(crate) fn settle(message: &mut CanonicalMessage<'_>) -> Result<(), BridgeError> {
    if message.parts.iter().any(|part| part.artifact.is_some_and(|index| index >= message.artifacts.len())) {
        return Err(BridgeError::malformed("part", "its artifact is missing"));
    }
    let residues = message.parts.iter_mut().map(|part| &mut part.residue).chain([&mut message.residue]);
    for residue in residues {
        residue.sort_by_key(|found| (found.binding, found.place));
        if residue.windows(2).any(|pair| matches!(pair, [a, b] if (a.binding, a.place) == (b.binding, b.place))) {
            return Err(BridgeError::malformed("extension.residue", "a place has residue twice"));
        }
    }
    message.parts.sort_by_key(|part| part.artifact.map_or(0, |index| index + 1));
    Ok(())
}
