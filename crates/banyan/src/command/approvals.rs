//! `banyan approvals`, `approve` and `deny`: waiting calls, and a person's answer. The shown call is checked against the text to
//! be signed; the gate decides if a signature counts, not this module.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use gateway::admin::client::AdminClient;
use gateway::admin::shapes::{ApprovalShown, ApprovalsShown, BelowShown, OperatorShown};
use mcp_proto::era::key;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::{printable, printable_lines};
use crate::signing::{self, SigningConsent};
use crate::table::{self, Align};
use crate::{gate, threads, time};

/// Characters of a client's name, and of its version, in a list.
const LONGEST_WORD: usize = 40;

/// Shows the calls that wait until a person agrees.
#[derive(Args)]
pub(crate) struct Approvals {
    /// Show those that are over as well
    #[arg(long)]
    all: bool,
    /// Go on with new events, until interrupted
    #[arg(short, long)]
    watch: bool,
}

/// Agrees to one call, with an SSH key that is enrolled.
#[derive(Args)]
pub(crate) struct Approve {
    /// The call's id, or its beginning
    id: String,
    /// File of the key [default: a key that an SSH agent has]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Do not ask again; needed without a terminal
    #[arg(short, long)]
    yes: bool,
}

/// Says no to one call.
#[derive(Args)]
pub(crate) struct Deny {
    /// The call's id, or its beginning
    id: String,
    /// Reason, for the caller
    #[arg(long, default_value = "")]
    reason: String,
}

/// `GET /-/operators`.
#[derive(Deserialize)]
pub(super) struct Operators {
    pub(super) operators: Vec<OperatorShown>,
}

/// A line of `GET /-/approvals/events`.
#[derive(Deserialize)]
struct ApprovalNews {
    event: String,
    approval: Option<ApprovalShown>,
}

impl Approvals {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        threads::wait(self.print(&gate, output))?
    }

    async fn print(&self, gate: &AdminClient, output: &Output) -> Result<(), Failure> {
        let query: &[(&str, &str)] = if self.all { &[("all", "true")] } else { &[] };
        let shown: ApprovalsShown = gate.get("/-/approvals", query).await?;
        if output.wants_json() && !self.watch {
            return output.json(&shown);
        }
        if !output.wants_json() {
            list(&shown, output)?;
        }
        if !self.watch {
            return Ok(());
        }
        let mut end = Ok(());
        let each = |line: &[u8]| {
            end = event(line, output);
            end.is_ok()
        };
        gate.lines("/-/approvals/events", &[], each).await?;
        end
    }
}

fn list(shown: &ApprovalsShown, output: &Output) -> Result<(), Failure> {
    if shown.approvals.is_empty() && shown.below.is_empty() {
        output.remark("nothing waits for approval");
        return Ok(());
    }
    let mut rows = vec![["ID", "TOOL", "CALLER", "STANDS", "AGREED", "LEFT"].map(str::to_owned).to_vec()];
    for approval in &shown.approvals {
        let left = approval.expires.saturating_sub(shown.now);
        rows.push(vec![
            approval.id.chars().take(8).collect(),
            printable(&approval.tool),
            whose(approval),
            approval.standing.as_str().to_owned(),
            format!("{} of {}", approval.votes.len(), approval.required),
            if approval.standing.is_held() { table::duration(left) } else { String::new() },
        ]);
    }
    for BelowShown { id, mount, gate, data, .. } in &shown.below {
        let data: serde_json::Value = serde_json::from_str(data.get()).unwrap_or_default();
        let tool = data["tool"].as_str().map(printable).unwrap_or_default();
        let left = data["expires"].as_u64().unwrap_or_default().saturating_sub(shown.now);
        rows.push(vec![
            id.chars().take(8).collect(),
            tool,
            format!("behind {} (gate {})", printable(mount), printable(&short(gate))),
            "pending".into(),
            String::new(),
            table::duration(left),
        ]);
    }
    let columns = [Align::Left, Align::Left, Align::Left, Align::Left, Align::Left, Align::Right];
    table::lines(&columns, &rows).iter().try_for_each(|line| output.line(line))
}

/// Names the caller, the room, and the client that the request names.
fn whose(approval: &ApprovalShown) -> String {
    let caller = printable(&approval.caller);
    let room = approval.room.as_ref().map(|room| format!(" in room {}", printable(room))).unwrap_or_default();
    format!("{caller}{room}{}", client_words(&approval.client))
}

/// Name and version of a client, from the words of a request about that client.
fn client_words(client: &str) -> String {
    let client: serde_json::Value = serde_json::from_str(client).unwrap_or_default();
    let words = ["name", "version"].into_iter().filter_map(|member| client[key::CLIENT_INFO][member].as_str());
    words
        .zip([" with ", " "])
        .map(|(word, before)| before.to_owned() + &printable(&word.chars().take(LONGEST_WORD).collect::<String>()))
        .collect()
}

fn event(line: &[u8], output: &Output) -> Result<(), Failure> {
    if output.wants_json() {
        return output.raw(&[line, b"\n"].concat());
    }
    let told: ApprovalNews =
        serde_json::from_slice(line).map_err(|e| Failure::Failed(format!("the gate sent a line that is no JSON: {e}")))?;
    match told.approval {
        Some(approval) => {
            output.line(&format!("{}  {}  {}  by {}", told.event, short(&approval.id), printable(&approval.tool), whose(&approval)))
        }
        None => output.line(&told.event),
    }
}

impl Approve {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        threads::wait(self.approve(&gate, output))?
    }

    async fn approve(&self, gate: &AdminClient, output: &Output) -> Result<(), Failure> {
        let meant = meant(gate, &self.id).await?;
        meant.check()?;
        if !output.wants_json() {
            meant.print(output);
        }
        let agreed = SigningConsent::obtain("Approve this very call?", self.yes)?;
        let operators: Operators = gate.get("/-/operators", &[]).await?;
        let proof = signing::sign(agreed, &meant.challenge, meant.namespace(), self.key.as_deref(), &operators.operators)?;
        let answer = gate.post(&format!("/-/approvals/{}/confirm", meant.id), &json!({ "proof": proof })).await?;
        let answer: serde_json::Value =
            serde_json::from_slice(&answer).map_err(|e| Failure::Failed(format!("the gate's answer can't be read: {e}")))?;
        if output.wants_json() {
            return output.json(&answer);
        }
        if answer["standing"] == "released" {
            return output.line(&output.paint(Look::Good, &meant.goes_out(time::now())));
        }
        output.line(&format!("agreed: {} of {}, somebody else is needed", answer["approvals"], answer["required"]))
    }
}

impl Deny {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        threads::wait(self.deny(&gate, output))?
    }

    async fn deny(&self, gate: &AdminClient, output: &Output) -> Result<(), Failure> {
        let meant = meant(gate, &self.id).await?;
        let answer = gate.post(&format!("/-/approvals/{}/deny", meant.id), &json!({ "reason": self.reason })).await?;
        if output.wants_json() {
            let denied: ApprovalShown =
                serde_json::from_slice(&answer).map_err(|e| Failure::Failed(format!("the gate's answer can't be read: {e}")))?;
            return output.json(&denied);
        }
        output.line("denied: the call does not go out")
    }
}

/// A call to be decided by a person: of this gate, or of a gate below.
struct MeantCall {
    id: String,
    tool: String,
    caller: String,
    room: Option<String>,
    route: String,
    /// The holding gate, for people; `None`: the asked gate.
    place: Option<String>,
    /// Id of the holding gate, as in the challenge; `None`: the asked gate's.
    gate: Option<String>,
    arguments: String,
    /// Other members of the request; empty: none.
    others: String,
    /// Words of the request about its client; empty: none.
    client: String,
    /// Preview by the call's own server, if any.
    preview: Option<String>,
    /// Reason for the lack of a preview that was asked for.
    preview_missing: Option<String>,
    challenge: String,
    digest: String,
    /// The last moment for going out.
    expires: u64,
    held: Where,
}

/// The place of a held call, as far as it settles when the call goes out.
#[derive(Clone, Copy)]
enum Where {
    /// At a gate below.
    Below,
    /// Here, with a waiting caller.
    Attended,
    /// Here, and the caller was told to come back.
    Left,
}

async fn meant(gate: &AdminClient, id: &str) -> Result<MeantCall, Failure> {
    let shown: ApprovalsShown = gate.get("/-/approvals", &[("all", "true")]).await?;
    let own = shown.approvals.iter().filter(|approval| approval.id.starts_with(id)).map(MeantCall::own);
    let below = shown.below.iter().filter(|below| below.id.starts_with(id)).map(MeantCall::below);
    let mut found: Vec<MeantCall> = own.chain(below).collect();
    match (found.pop(), found.len()) {
        (Some(one), 0) => Ok(one),
        (Some(_), more) => Err(Failure::Usage(format!("{} calls begin with `{id}`: give more of the id", more + 1))),
        (None, _) => Err(Failure::NotFound(format!("no call `{id}` waits for approval\n  `banyan approvals` shows what does"))),
    }
}

impl MeantCall {
    fn own(approval: &ApprovalShown) -> Self {
        Self {
            id: approval.id.clone(),
            tool: approval.tool.clone(),
            caller: approval.caller.clone(),
            room: approval.room.clone(),
            route: approval.route.join(" > "),
            place: None,
            gate: None,
            arguments: approval.arguments.clone(),
            others: approval.others.clone(),
            client: approval.client.clone(),
            preview: approval.preview.clone(),
            preview_missing: approval.preview_missing.clone(),
            challenge: approval.challenge.clone(),
            digest: approval.digest.clone(),
            expires: approval.expires,
            held: if approval.attended { Where::Attended } else { Where::Left },
        }
    }

    fn below(below: &BelowShown) -> Self {
        let data: serde_json::Value = serde_json::from_str(below.data.get()).unwrap_or_default();
        let challenge = data["challenge"].as_str().unwrap_or_default().to_owned();
        let said: serde_json::Value = serde_json::from_str(&challenge).unwrap_or_default();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            id: below.id.clone(),
            tool: text(&said["tool"]),
            caller: text(&said["caller"]),
            room: None,
            route: format!("{} > {}", below.mount, text(&said["tool"])),
            place: Some(place(below)),
            gate: Some(below.gate.clone()),
            arguments: canonical(&below.data, "arguments").unwrap_or_default(),
            others: canonical(&below.data, "others").unwrap_or_default(),
            client: canonical(&below.data, "client").unwrap_or_default(),
            preview: data["preview"].as_str().map(str::to_owned),
            preview_missing: data["preview_missing"].as_str().map(str::to_owned),
            digest: text(&data["digest"]),
            expires: data["expires"].as_u64().unwrap_or_default(),
            held: Where::Below,
            challenge,
        }
    }

    /// Tells the fate of the call after approval.
    fn goes_out(&self, now: u64) -> String {
        let left = table::duration(self.expires.saturating_sub(now));
        match self.held {
            Where::Attended => "approved: its caller waits, and the call goes out now, once".to_owned(),
            Where::Below => format!("approved: the gate below lets the call out once, within {left}"),
            Where::Left => format!("approved: the call goes out once, when its caller makes it again within {left}"),
        }
    }

    /// Checks that the shown call is the call to be signed, whatever the gate says.
    fn check(&self) -> Result<(), Failure> {
        let said: serde_json::Value = serde_json::from_str(&self.challenge).unwrap_or_default();
        let is_same = said["tool"] == *self.tool
            && said["caller"] == *self.caller
            && said["id"] == *self.id
            && self.gate.as_ref().is_none_or(|gate| said["gate"] == **gate)
            && said["arguments_sha256"] == *hex(&Sha256::digest(&self.arguments))
            && said["type"] == *self.namespace()
            && (self.others.is_empty() || said["others_sha256"] == *hex(&Sha256::digest(&self.others)))
            && said["preview_sha256"].as_str() == self.preview.as_ref().map(|text| hex(&Sha256::digest(text))).as_deref()
            && said["client_sha256"].as_str().unwrap_or_default() == self.client_hash()
            && self.digest == hex(&Sha256::digest(&self.challenge));
        if is_same {
            return Ok(());
        }
        Err(Failure::Refused(
            "the gate shows another call than the one it wants signed: nothing was signed\n  do not approve it".to_owned(),
        ))
    }

    fn client_hash(&self) -> String {
        if self.client.is_empty() { String::new() } else { hex(&Sha256::digest(&self.client)) }
    }

    /// Gives the namespace of the proof: requests with a preview, and those with members besides the arguments, have their own, so that
    /// nobody agrees to what is not shown.
    fn namespace(&self) -> &'static str {
        if self.preview.is_some() {
            return "banyan-approval-v3";
        }
        if self.others.is_empty() { "banyan-approval-v1" } else { "banyan-approval-v2" }
    }

    fn print(&self, output: &Output) {
        output.remark(&output.paint_remark(Look::Strong, &printable(&self.tool)));
        let shown = [
            ("caller", Some(&self.caller)),
            ("room", self.room.as_ref()),
            ("route", Some(&self.route)),
            ("gate", self.place.as_ref()),
            ("arguments", Some(&self.arguments)),
            ("others", Some(&self.others).filter(|others| !others.is_empty())),
            ("client", Some(&self.client).filter(|client| !client.is_empty())),
        ];
        for (what, text) in shown.into_iter().filter_map(|(what, text)| Some((what, text?))) {
            output.remark(&format!("  {what:<10}{}", printable(text)));
        }
        if let Some(why) = &self.preview_missing {
            output.remark(&format!("  {:<10}none: {}", "preview", printable(why)));
        }
        for line in self.preview.iter().flat_map(|text| preview_lines(text)) {
            let look = changed(&line).map_or_else(|| line.clone(), |look| output.paint_remark(look, &line));
            output.remark(&look);
        }
    }
}

/// Lines of a preview, set in, below the words whose they are.
fn preview_lines(text: &str) -> Vec<String> {
    let head = "  preview   what the call would do, in its server's own words:".to_owned();
    std::iter::once(head).chain(printable_lines(text).lines().map(|line| format!("  | {line}"))).collect()
}

/// Look of a line that a diff adds or takes away.
fn changed(line: &str) -> Option<Look> {
    match line.strip_prefix("  | ")?.chars().next()? {
        '+' => Some(Look::Good),
        '-' => Some(Look::Bad),
        _ => None,
    }
}

/// Names the holding gate, and the mount that vouches for it.
fn place(below: &BelowShown) -> String {
    let BelowShown { mount, gate, vouched, .. } = below;
    let word = format!("; only `{mount}` says that it is a gate: approve it there unless you know this id");
    format!("{gate}, behind `{mount}`{}", if *vouched { "" } else { &word })
}

/// Gives a raw member of the data about a call held by a gate below.
fn canonical(data: &serde_json::value::RawValue, name: &str) -> Option<String> {
    let members: BTreeMap<String, Box<serde_json::value::RawValue>> = serde_json::from_str(data.get()).ok()?;
    members.get(name).map(|raw| raw.get().to_owned())
}

fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_the_client_of_a_request() {
        let client = |info: serde_json::Value| client_words(&json!({"io.modelcontextprotocol/clientInfo": info}).to_string());
        assert_eq!(client(json!({"name": "ed\u{1b}itor", "version": "1.2"})), " with ed\\u{1b}itor 1.2");
        assert_eq!(client(json!({"name": "x".repeat(99)})), format!(" with {}", "x".repeat(40)));
        assert_eq!((client_words(""), client_words("{}")), (String::new(), String::new()));
    }

    #[test]
    fn a_preview_stands_apart_from_what_the_gate_says() {
        let lines = preview_lines("- a\n+ b\u{1b}[1A\n  caller    root");
        assert_eq!(lines[1..], ["  | - a", "  | + b\\u{1b}[1A", "  |   caller    root"]);
        let looks: Vec<_> = lines.iter().map(|line| changed(line).is_some()).collect();
        assert_eq!(looks, [false, true, true, false]);
    }

    #[test]
    fn what_is_shown_is_what_is_signed() {
        let arguments = "{\"path\":\"/\"}".to_owned();
        let challenge = json!({
            "tool": "files.wipe", "caller": "ci", "id": "1", "arguments_sha256": hex(&Sha256::digest(&arguments)),
            "gate": "g", "type": "banyan-approval-v1",
        });
        let challenge = challenge.to_string();
        let more = challenge.replace("-v1\"", &format!("-v2\",\"others_sha256\":\"{}\"", hex(&Sha256::digest("{\"task\":{}}"))));
        let meant = |arguments: &str, tool: &str, gate: Option<&str>| MeantCall {
            id: "1".into(),
            tool: tool.into(),
            caller: "ci".into(),
            room: None,
            route: String::new(),
            place: None,
            gate: gate.map(str::to_owned),
            arguments: arguments.into(),
            client: String::new(),
            preview: None,
            preview_missing: None,
            others: String::new(),
            digest: hex(&Sha256::digest(&challenge)),
            challenge: challenge.clone(),
            expires: 100,
            held: Where::Left,
        };
        let with = |others: &str, challenge: &str| MeantCall {
            others: others.into(),
            digest: hex(&Sha256::digest(challenge)),
            challenge: challenge.to_owned(),
            ..meant(&arguments, "files.wipe", None)
        };
        assert!(with("{\"task\":{}}", &more).check().is_ok());
        for (others, challenge) in [("", &more), ("{\"task\":1}", &more), ("{\"task\":{}}", &challenge)] {
            assert!(with(others, challenge).check().is_err(), "{others} {challenge}");
        }
        let client = "{\"name\":\"c\"}";
        let of_client = challenge.replace("-v1\"", &format!("-v1\",\"client_sha256\":\"{}\"", hex(&Sha256::digest(client))));
        for (client, is_good) in [(client, true), ("", false), ("{\"name\":\"d\"}", false)] {
            let meant = MeantCall { client: client.into(), ..with("", &of_client) };
            assert_eq!(meant.check().is_ok(), is_good, "{client}");
        }
        let foreseen = challenge.replace("-v1\"", &format!("-v3\",\"preview_sha256\":\"{}\"", hex(&Sha256::digest("- a"))));
        for (preview, is_good) in [(Some("- a"), true), (Some("- b"), false), (None, false)] {
            let meant = MeantCall { preview: preview.map(str::to_owned), ..with("", &foreseen) };
            assert_eq!(meant.check().is_ok(), is_good, "{preview:?}");
        }
        let unseen = MeantCall { preview: Some("- a".into()), ..with("", &challenge) };
        assert!(unseen.check().is_err(), "a preview that is not signed");
        assert!(meant(&arguments, "files.wipe", None).check().is_ok() && meant(&arguments, "files.wipe", Some("g")).check().is_ok());
        assert!(meant("{}", "files.wipe", None).check().is_err() && meant(&arguments, "files.read", None).check().is_err());
        assert!(meant(&arguments, "files.wipe", Some("another")).check().is_err(), "it would be good at another gate");
        assert_eq!(
            meant(&arguments, "files.wipe", None).goes_out(10),
            "approved: the call goes out once, when its caller makes it again within 1m 30s"
        );
    }
}
