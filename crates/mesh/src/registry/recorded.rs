//! Records of registrations: arrivals, refusals, ends. Decides nothing, and waits for nothing.

use audit::record::{Record, Registration, Text};
use banyan_model::Segment;
use mesh_proto::id::NodeId;
use store::{REGISTRATION, Refusal};

use crate::mesh::Mesh;

/// Subject of a record.
pub struct Whose<'a> {
    pub principal: &'a str,
    pub segment: &'a Segment,
    pub subserver: NodeId,
}

/// Records that a registration is `registered`, `refused`, `lost` or `ended`, with the reason.
pub fn record(mesh: &Mesh, what: &str, whose: &Whose<'_>, reason: Option<&str>) {
    let registration = Registration {
        authority: None,
        count: None,
        principal: Text::Borrowed(whose.principal),
        reason: reason.map(Text::Borrowed),
        segment: Some(Text::Borrowed(whose.segment.as_str())),
        subserver: Some(Text::Owned(whose.subserver.to_string())),
        what: Text::Borrowed(what),
    };
    match what {
        REFUSED => refused(mesh, registration),
        _ => mesh.gate.record.journal.append_for(whose.principal, &Record::Registration(registration)),
    }
}

/// Records that the owner of the gate frees the segment of an authority. No caller is its principal.
pub fn released(mesh: &Mesh, segment: &Segment) {
    let segment = Some(Text::Borrowed(segment.as_str()));
    let registration = Registration { segment, what: Text::Borrowed("released"), ..Registration::default() };
    mesh.gate.record.journal.append(&Record::Registration(registration));
}

/// Records the refusal of an illegible registration, of which only the sender is known.
pub fn unreadable(mesh: &Mesh, principal: &str, reason: &str) {
    let registration = Registration {
        principal: Text::Borrowed(principal),
        reason: Some(Text::Borrowed(reason)),
        what: Text::Borrowed(REFUSED),
        ..Registration::default()
    };
    refused(mesh, registration);
}

/// Word of the record for a registration that was not taken.
const REFUSED: &str = "refused";

fn refused(mesh: &Mesh, registration: Registration<'_>) {
    let way = mesh.gate.record.journal.count_refusal(&registration.principal, REGISTRATION);
    mesh.gate.record.journal.refuse(way, Refusal::Registration(registration));
}
