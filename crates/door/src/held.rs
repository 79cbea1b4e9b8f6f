//! What somebody was let in by who keeps something open that is no stream of MCP: it is asked for once, and has to hold as long as that is
//! open. Who may come in is decided in `door.rs`.

use std::sync::Arc;

use http::StatusCode;
use mcp_proto::http1::Fields;

use crate::entrance::Entrance;
use crate::entry;
use crate::entry::Refused;
use crate::known::Known;
use call::words::entered::Entered;
use call::words::party::Party;

/// Lets a request in, or not.
pub type Enter = fn(&Arc<Entrance>, &mut Known, &Fields) -> Result<Entered, Refused>;

/// The way in that is everybody's.
pub fn enter(entrance: &Arc<Entrance>, known: &mut Known, fields: &Fields) -> Result<Entered, Refused> {
    known.enter(entrance, fields)
}

/// What it was.
pub struct Held {
    entrance: Arc<Entrance>,
    known: Known,
    fields: Fields,
    pub entered: Entered,
    enter: Enter,
}

impl Held {
    /// Lets somebody in, or not.
    pub fn enter(entrance: &Arc<Entrance>, party: Option<Arc<Party>>, fields: Fields, enter: Enter) -> Result<Self, Refused> {
        let mut known = Known::of(party);
        let entered = enter(entrance, &mut known, &fields)?;
        Ok(Self { entrance: Arc::clone(entrance), known, fields, entered, enter })
    }

    /// Ready, with the reason, when whoever came in would not be let in any more, or as somebody else.
    pub async fn over(mut self) -> String {
        let mut applied = self.entrance.trust.reapplied();
        loop {
            match (self.enter)(&self.entrance, &mut self.known, &self.fields) {
                Ok(now) if now.principal == self.entered.principal => {}
                Ok(_) => return "it is somebody else by the configuration in force".into(),
                // Whether its token is good shows only when the keys are there.
                Err(refused) if refused.status == StatusCode::SERVICE_UNAVAILABLE => {}
                Err(refused) => return refused.why,
            }
            tokio::select! {
                changed = applied.changed() => if changed.is_err() { return "the gate ends".into() },
                () = entry::over(&self.entered, &self.entrance.trust) => return "its certificate or token has ended or was taken back".into(),
            }
        }
    }
}
