//! Refusals of calls and registrations, as in the record. Does not bound their number.

use audit::bounds::clip;
use audit::record::{Intent, Record, Refused, Registration, Text};
use audit::shape::LEFT_OUT;

/// Longest text in an entry that counts refusals, in bytes.
pub(super) const BRIEF: usize = 256;
/// Most rules named by such an entry.
const RULES: usize = 4;

/// A refusal.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and a box would cost more than the room it spares")]
pub enum Refusal<'a> {
    /// Refusal of a call.
    Call(Refused<'a>),
    /// Refusal of a registration.
    Registration(Registration<'a>),
}

/// The reason of all refused registrations, where they are counted. The particular fault is the sender's text, in part.
pub const REGISTRATION: &str = "registration";

impl Refusal<'_> {
    /// Name of the refused principal.
    pub fn principal(&self) -> &str {
        match self {
            Self::Call(refused) => &refused.intent.principal,
            Self::Registration(registration) => &registration.principal,
        }
    }

    /// Word under which refusals are counted together.
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Call(refused) => &refused.reason,
            Self::Registration(_) => REGISTRATION,
        }
    }

    /// Makes a short copy, kept of the first of many.
    pub(super) fn brief(&self) -> Refusal<'static> {
        match self {
            Self::Call(Refused { code, count, intent, reason, rules }) => {
                let intent = Intent {
                    approval: intent.approval.as_deref().map(text),
                    arguments: None,
                    began: intent.began,
                    call: text(&intent.call),
                    decision: intent.decision.as_deref().map(text),
                    gated: intent.gated,
                    method: text(&intent.method),
                    mount: intent.mount.as_deref().map(text),
                    name: text(&intent.name),
                    principal: text(&intent.principal),
                    request: text(&intent.request),
                    trace: intent.trace.as_deref().map(text),
                };
                let rules = rules.iter().take(RULES).map(|rule| text(rule)).collect();
                Refusal::Call(Refused { code: *code, count: *count, intent, reason: text(reason), rules })
            }
            Self::Registration(Registration { authority, count, principal, reason, segment, subserver, what }) => {
                Refusal::Registration(Registration {
                    authority: authority.as_deref().map(text),
                    count: *count,
                    principal: text(principal),
                    reason: reason.as_deref().map(text),
                    segment: segment.as_deref().map(text),
                    subserver: subserver.as_deref().map(text),
                    what: text(what),
                })
            }
        }
    }

    /// Takes the name of the principal out.
    pub(super) fn anonymous(mut self) -> Self {
        let (Self::Call(Refused { intent: Intent { principal, .. }, .. }) | Self::Registration(Registration { principal, .. })) = &mut self;
        *principal = Text::Borrowed(LEFT_OUT);
        self
    }

    /// Sets the number of refusals counted by the entry.
    pub(super) fn counted(mut self, many: u64) -> Self {
        let (Self::Call(Refused { count, .. }) | Self::Registration(Registration { count, .. })) = &mut self;
        *count = Some(many).filter(|many| *many > 1);
        self
    }
}

impl<'a> Refusal<'a> {
    /// Turns the refusal into a record.
    pub fn into_record(self) -> Record<'a> {
        match self {
            Self::Call(refused) => Record::Refused(refused),
            Self::Registration(registration) => Record::Registration(registration),
        }
    }
}

fn text(text: &str) -> Text<'static> {
    Text::Owned(clip(text, BRIEF).to_owned())
}
