//! Preview of a waiting call: asked of the call's own server, by a reading tool named in the definition, with the arguments of the call. The
//! preview takes the one way of every call, as a read of the same caller. Does not judge texts, and knows no kind of server.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use banyan_model::{Era, Method};
use bytes::Bytes;
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::era::INITIALIZE;
use mcp_proto::hidden;
use mcp_proto::json::{self, Members, Object, quote};
use mcp_proto::projection::local_names;
use policy::approval::{Call, Cause, Demand, Foreknown, Preview, Refusal};

use crate::judge::gate::Gate;
use crate::tree::back::Back;
use crate::tree::caller::{Caller, Last};
use crate::tree::catalog::{Catalog, Offer};
use crate::tree::snapshot::{Branch, Sight};
use crate::way::authorize::Decision;
use crate::way::error::CallError;
use crate::way::gate::hold::not_kept;
use crate::way::gate::{Cleared, GateOutcome};
use crate::way::reserve::Reservation;
use crate::way::resolve::{Aim, Resolved};

/// Member of a tool's `_meta` that offers previews: `{"tool": NAME}`.
const META: &str = "io.banyan/preview";
/// Longest preview, in bytes, as shown.
const LONGEST: usize = 64 << 10;
/// Longest answer to look at, in bytes.
const LONGEST_ANSWER: usize = 8 * LONGEST;
/// Longest reason for a lack, in characters.
const LONGEST_REASON: usize = 300;
/// Longest time for a preview.
const WITHIN: Duration = Duration::from_secs(20);

/// A waiting call, as far as its preview needs it.
#[derive(Clone, Copy)]
pub struct CallPreview<'a> {
    pub gate: &'a Arc<Gate>,
    pub resolved: &'a Resolved,
    /// Decision of the rules about the call.
    pub rules: Option<&'a Decision>,
    pub back: &'a Arc<Back>,
}

impl CallPreview<'_> {
    /// Previews a call for people; `None` where nobody has to see a preview.
    ///
    /// # Errors
    /// If a required preview can't be had, or the desk can't be asked.
    pub async fn before_people(&self, call: &Call) -> Result<Option<Preview>, CallError> {
        let demand = self.demand();
        if demand == Demand::Off || (demand == Demand::Offered && !self.is_offered()) {
            return Ok(None);
        }
        let is_asked = match self.gate.rules.approvals.foreknown(call.clone()).await.map_err(not_kept)? {
            Foreknown::Known => false,
            Foreknown::Granted => demand == Demand::Required,
            Foreknown::New => true,
        };
        if !is_asked {
            return Ok(None);
        }
        match self.preview(call).await {
            Preview::Missing(why) if demand == Demand::Required => Err(CallError::Approval(Refusal::NoPreview(why))),
            preview @ (Preview::Missing(_) | Preview::Shown(_)) => Ok(Some(preview)),
        }
    }

    /// Previews an approved call once more, right before departure; `None` if people saw no preview. The desk compares.
    ///
    /// # Errors
    /// If a preview was seen, or is required by now, and can't be had. The agreement stands, and the caller may come back.
    pub async fn before_leaving(&self, id: &str, call: &Call) -> Result<Option<Preview>, CallError> {
        let approval = self.gate.rules.approvals.look(id).await.map_err(not_kept)?;
        let was_shown = approval.is_some_and(|approval| approval.challenge.call.shown_preview().is_some());
        let preview = match (was_shown, self.demand()) {
            (true, _) => self.preview(call).await,
            (false, Demand::Required) => Preview::Missing("people agreed without one".to_owned()),
            (false, Demand::Off | Demand::Offered) => return Ok(None),
        };
        let Preview::Missing(why) = preview else { return Ok(Some(preview)) };
        self.gate.rules.approvals.leave(id, true).await;
        if self.back.cancel.is_cancelled() {
            return Err(CallError::Cancelled);
        }
        Err(CallError::Approval(Refusal::NoPreview(why)))
    }

    /// Strictest demand of the configuration and the rules.
    fn demand(&self) -> Demand {
        let config = self.gate.config.load();
        let demand = config.gate.as_deref().map_or(Demand::Offered, |gate| gate.preview_of(&self.resolved.branch.mount.config.name));
        if self.rules.is_some_and(Decision::requires_preview) { Demand::Required } else { demand }
    }

    fn is_offered(&self) -> bool {
        let Aim::Tool(_) = self.resolved.aim else { return false };
        let tree = self.gate.mounts.tree.load();
        let branch = tree.branch(&self.resolved.branch.mount.config.name);
        branch.and_then(|branch| offer(branch, &self.resolved.name)).is_some_and(|offer| offered(&offer.entry.raw).is_some())
    }

    /// Asks the server, for a limited time.
    async fn preview(&self, call: &Call) -> Preview {
        let (sight, request) = match self.question(call) {
            Ok(question) => question,
            Err(why) => return Preview::Missing(why.to_owned()),
        };
        let inner = Back::previewing(Arc::clone(&sight.1));
        // Where nobody waits any more, the read is cancelled, and ends in a task of its own.
        let _guard = inner.cancel.clone().drop_guard();
        let running = tokio::spawn(read(Arc::clone(self.gate), sight.0, request, inner));
        let answer = tokio::select! {
            answer = running => answer,
            () = tokio::time::sleep(WITHIN) => return missing(&format!("its server gave none within {} s", WITHIN.as_secs())),
            () = self.back.cancel.cancelled() => return missing("its caller left"),
        };
        match answer {
            Ok(Ok(Answer::Result(result))) => shown(&result),
            Ok(Ok(Answer::Error(error))) => {
                let text = Members::again(&error).str("message").unwrap_or_default().into_owned();
                missing(&format!("its server answered with an error: {text}"))
            }
            Ok(Err(CallError::Approval(Refusal::NoPreview(why)))) => missing(&why),
            Ok(Err(error)) => missing(&error.tell(Era::Initialize).message),
            Err(_) => missing("the gate could not ask for it"),
        }
    }

    /// Request for the preview, in the view of the caller; or the reason for the lack of one.
    fn question(&self, call: &Call) -> Result<((Sight, Arc<Caller>), Request), &'static str> {
        let Aim::Tool(_) = self.resolved.aim else { return Err("only calls of tools have previews") };
        let caller = asking(&self.resolved.caller);
        let sight = Sight::of_caller(self.gate.mounts.tree.load_full(), &caller);
        let mount = &self.resolved.branch.mount.config.name;
        let place = sight.tree.branches.iter().position(|branch| branch.mount.config.name == *mount);
        let branch = place.and_then(|place| sight.tree.branches.get(place)).ok_or("its server is not there any more")?;
        let own = offer(branch, &self.resolved.name).ok_or("its tool is not there any more")?;
        let named = offered(&own.entry.raw).ok_or("its tool offers none")?;
        let at = beside(&branch.catalog, own, &named).ok_or("its server lists no tool of the name that it gives for previews")?;
        if branch.catalog.tools.get(at).is_some_and(|found| found.entry.key == own.entry.key) {
            return Err("its tool names itself for previews");
        }
        let name = sight.view.tools.iter().find(|(_, found)| Some(found.0) == place && found.1 == at).map(|(name, _)| quote(name));
        let name = name.ok_or("its caller is not shown the tool for previews")?;
        let params = format!("{{\"name\":{name},\"arguments\":{}}}", call.arguments);
        let request = Request { id: Bytes::from_static(b"\"preview\""), method: "tools/call".into(), params: Bytes::from(params).into() };
        Ok(((sight, caller), request))
    }
}

/// Lets a preview out if its tool only reads: by the operator's word, or by the server's where this gate believes servers, and never where
/// anybody would be asked.
pub fn cleared(reservation: Reservation, causes: &[Cause]) -> Result<GateOutcome, CallError> {
    let Reservation { resolved, decision, room } = reservation;
    if resolved.noted().is_none_or(|noted| noted.risk().mutable) || !causes.is_empty() {
        let why = format!("`{}`, named for previews, is no tool that only reads by the rules of this gate", resolved.name);
        return Err(CallError::Approval(Refusal::NoPreview(why)));
    }
    Ok(GateOutcome::Cleared(Cleared { resolved, decision, room, release: None, agreed: None }))
}

type Reading = Pin<Box<dyn Future<Output = Result<Answer, CallError>> + Send>>;

/// Takes the one way. The type is named, since a call waits for a preview, and a preview is a call.
fn read(gate: Arc<Gate>, sight: Sight, request: Request, back: Arc<Back>) -> Reading {
    Box::pin(async move { crate::way::call(&gate, &sight, &request, Method::ToolCall, &back).await })
}

/// The same caller, as a client that can't be asked anything and has no session.
fn asking(caller: &Caller) -> Arc<Caller> {
    Arc::new(Caller {
        principal: caller.principal.clone(),
        is_owner: caller.is_owner,
        subject: Arc::clone(&caller.subject),
        party: caller.party.clone(),
        era: Era::Initialize,
        version: INITIALIZE[0],
        capabilities: Bytes::from_static(b"{}"),
        info: caller.info.clone(),
        scope: caller.scope.clone(),
        session: None,
        shown: Last::default(),
        standing: Last::default(),
        share: OnceLock::new(),
    })
}

fn offer<'a>(branch: &'a Branch, tool: &str) -> Option<&'a Offer> {
    branch.catalog.tools.iter().find(|offer| offer.entry.key == tool)
}

/// Name of the tool for previews, in a definition.
fn offered(definition: &[u8]) -> Option<String> {
    let meta = Members::again(definition).object("_meta")?;
    meta.has(META).then(|| meta.object(META).and_then(|offer| Some(offer.str("tool")?.into_owned())).unwrap_or_default())
}

/// Place of the tool named by `own` for previews: of the same server, and behind a gate of the same path.
fn beside(catalog: &Catalog, own: &Offer, named: &str) -> Option<usize> {
    let (_, path) = own.local.0.split_last()?;
    if path.is_empty() {
        return catalog.tools.iter().position(|offer| offer.entry.key == named);
    }
    let last = local_names(&[named]).pop();
    catalog
        .tools
        .iter()
        .position(|offer| offer.local.0.split_last().is_some_and(|(tool, before)| before == path && Some(tool) == last.as_ref()))
}

/// Text of a result, with invisible characters written out.
fn shown(result: &Object) -> Preview {
    if result.len() > LONGEST_ANSWER {
        return missing(&format!("it is longer than {LONGEST} bytes"));
    }
    let members = result.members();
    if members.str("resultType").is_some_and(|kind| kind != "complete") {
        return missing("its server wants something first");
    }
    let blocks = members.get("content").and_then(json::elements).unwrap_or_default();
    let texts: Vec<String> = blocks.iter().filter_map(|block| Some(Members::again(block).str("text")?.into_owned())).collect();
    let text = written(&texts.join("\n"));
    if members.get("isError") == Some(b"true") {
        return missing(&format!("its server could not make it: {text}"));
    }
    match text.len() {
        0 => missing("it is empty"),
        1..=LONGEST => Preview::Shown(text),
        _ => missing(&format!("it is longer than {LONGEST} bytes")),
    }
}

/// Writes out invisible characters, except for ends of lines and tabs.
fn written(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        if c != '\n' && c != '\t' && hidden::is_unseen(c) {
            out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

fn missing(why: &str) -> Preview {
    Preview::Missing(written(&why.chars().take(LONGEST_REASON).collect::<String>()).replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(result: &'static str) -> Preview {
        shown(&Bytes::from_static(result.as_bytes()).into())
    }

    #[test]
    fn a_preview_shows_whatever_nobody_would_see() {
        let text = r#"{"content":[{"type":"text","text":"a\u001b[2K\u202eb\r\nc\td\re"},{"type":"image"},{"type":"text","text":"f"}]}"#;
        assert_eq!(of(text), Preview::Shown("a⟨U+001B⟩[2K⟨U+202E⟩b\nc\td⟨U+000D⟩e\nf".to_owned()));
    }

    #[test]
    fn what_is_no_preview_says_why() {
        let why = |result| if let Preview::Missing(why) = of(result) { why } else { String::new() };
        assert_eq!(why(r#"{"content":[]}"#), "it is empty");
        assert_eq!(why(r#"{"isError":true,"content":[{"type":"text","text":"no\nway"}]}"#), "its server could not make it: no way");
        assert_eq!(why(r#"{"resultType":"input_required","content":[{"type":"text","text":"x"}]}"#), "its server wants something first");
        let long = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(LONGEST + 1));
        assert_eq!(shown(&Bytes::from(long).into()), missing("it is longer than 65536 bytes"));
        let hidden = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "\u{202e}".repeat(LONGEST / 4));
        assert_eq!(shown(&Bytes::from(hidden).into()), missing("it is longer than 65536 bytes"));
    }

    #[test]
    fn only_a_definition_that_says_so_offers_a_preview() {
        let offer = |meta: &str| offered(format!(r#"{{"name":"t","_meta":{meta}}}"#).as_bytes());
        assert_eq!(offer(r#"{"io.banyan/preview":{"tool":"look"}}"#).as_deref(), Some("look"));
        // A malformed offer is one that nothing answers to, so that people are told.
        assert_eq!(offer(r#"{"io.banyan/preview":true}"#).as_deref(), Some(""));
        assert_eq!((offer("{}"), offered(b"{}")), (None, None));
    }
}
