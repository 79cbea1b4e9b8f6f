//! A credential of somebody who keeps a connection open, other than a stream of MCP: checked again whenever it may have ended. Does not
//! know how; `entry.rs` does.

use std::sync::Arc;

use http::StatusCode;
use mcp_proto::http1::Fields;

use crate::entrance::Entrance;
use crate::entry;
use crate::entry::EntryRefusal;
use crate::known::KnownClient;
use call::words::entered::{AdmittedCaller, By};
use call::words::party::Party;

/// Admits or refuses a request.
pub type Enter = fn(&Arc<Entrance>, &mut KnownClient, &Fields) -> Result<AdmittedCaller, EntryRefusal>;

/// Admits or refuses a request at the door for everybody.
pub fn enter(entrance: &Arc<Entrance>, known: &mut KnownClient, fields: &Fields) -> Result<AdmittedCaller, EntryRefusal> {
    known.enter(entrance, fields)
}

/// An admission, with all that is needed to repeat it.
pub struct HeldEntry {
    entrance: Arc<Entrance>,
    known: KnownClient,
    fields: Fields,
    pub entered: AdmittedCaller,
    enter: Enter,
}

impl HeldEntry {
    /// Lets somebody in, or not.
    pub fn enter(entrance: &Arc<Entrance>, party: Option<Arc<Party>>, fields: Fields, enter: Enter) -> Result<Self, EntryRefusal> {
        let mut known = KnownClient::of_party(party);
        let entered = enter(entrance, &mut known, &fields)?;
        Ok(Self { entrance: Arc::clone(entrance), known, fields, entered, enter })
    }

    /// Completes, with the reason, when the request would be refused by now, or admitted as another principal.
    pub async fn over(mut self) -> String {
        let mut applied = self.entrance.trust.reapplied();
        loop {
            match (self.enter)(&self.entrance, &mut self.known, &self.fields) {
                Ok(now) if now.principal == self.entered.principal => {}
                Ok(_) => return "it is somebody else by the configuration in force".into(),
                // A token can be judged only once its keys are there.
                Err(refused) if refused.status == StatusCode::SERVICE_UNAVAILABLE => {}
                Err(refused) => return refused.why,
            }
            tokio::select! {
                changed = applied.changed() => if changed.is_err() { return "the gate ends".into() },
                () = entry::over(&self.entered, &self.entrance.trust) => return "its certificate or token has ended or was taken back".into(),
            }
        }
    }

    /// Completes when the credential was taken back: its token, issuer or certificate is gone. An issuer's token that merely runs out
    /// was good when the work began, and takes nothing back.
    pub async fn revoked(mut self) {
        let mut applied = self.entrance.trust.reapplied();
        loop {
            if !self.is_still_given() {
                return;
            }
            let certificate = async {
                match &self.entered.party {
                    Some(party) => self.entrance.trust.ended(party).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = applied.changed() => if changed.is_err() { return },
                () = certificate => return,
            }
        }
    }

    fn is_still_given(&mut self) -> bool {
        if let By::Issuer(issuer, ..) = &self.entered.by
            && !self.entered.holds()
        {
            return self.entrance.gate.config.load().trust.issuers.iter().any(|known| known.name == *issuer);
        }
        match (self.enter)(&self.entrance, &mut self.known, &self.fields) {
            Ok(now) => now.principal == self.entered.principal,
            // A token can be judged only once its keys are there.
            Err(refused) => refused.status == StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}
