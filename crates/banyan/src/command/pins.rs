//! `banyan pins`: definitions that wait for a look, and their differences. Asks the running gate, or without
//! one reads the files. The decision to wait is not made here.

use clap::{Args, Subcommand};
use disk::DiskStores;
use gateway::admin::shapes::{PinShown, PinsShown, Refusal, RefusalKind};
use gateway::pins::Look as Looked;
use policy::pin::{Concern, Standing};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::{printable, printable_lines};
use crate::table::{self, Align};
use crate::{gate, places, threads, time};

/// Shows, accepts and refuses definitions that wait.
#[derive(Args)]
pub(crate) struct Pins {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Accept definitions: their tools, prompts and resources are listed from now on
    Accept {
        /// A server, or one thing of it: `MOUNT`, `MOUNT.TOOL`, `MOUNT.URI`, `MOUNT.instructions`
        names: Vec<String>,
    },
    /// List those that wait or were refused
    List {
        /// And those that are good
        #[arg(long)]
        all: bool,
    },
    /// Refuse definitions: their tools, prompts and resources stay away, without further questions
    Refuse {
        /// A server, or one thing of it: `MOUNT`, `MOUNT.TOOL`, `MOUNT.URI`, `MOUNT.instructions`
        names: Vec<String>,
    },
    /// Show their texts, and the differences from the last accepted ones
    Show {
        /// A server, or one thing of it: `MOUNT`, `MOUNT.TOOL`, `MOUNT.URI`, `MOUNT.instructions`
        name: String,
    },
}

impl Pins {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        match &self.action {
            None => list(&known(place, false)?, output),
            Some(Action::List { all }) => list(&known(place, *all)?, output),
            Some(Action::Show { name }) => show(known(place, true)?, name, output),
            Some(Action::Accept { names }) => looked(place, names, Standing::Accepted, output),
            Some(Action::Refuse { names }) => looked(place, names, Standing::Refused, output),
        }
    }
}

fn known(place: &Place, all: bool) -> Result<PinsShown, Failure> {
    let Some(gate) = gate::running(place)? else {
        return gateway::pins::kept(&*DiskStores::at(&places::state_dir()?), all).map_err(|error| Failure::Failed(error.to_string()));
    };
    let query: &[(&str, &str)] = if all { &[("all", "true")] } else { &[] };
    Ok(threads::wait(gate.get("/-/pins", query))??)
}

/// Accepts or refuses definitions as shown now: each is named by its hash.
fn looked(place: &Place, names: &[String], standing: Standing, output: &Output) -> Result<(), Failure> {
    if names.is_empty() {
        return Err(Failure::Usage("name a server or something of it: `banyan pins` shows which wait".to_owned()));
    }
    let path = if standing == Standing::Accepted { "/-/pins/accept" } else { "/-/pins/refuse" };
    let mut done = PinsShown { pins: Vec::new() };
    for name in names {
        let mut meant = known(place, false)?.pins;
        meant.retain(|pin| is_meant(pin, name) && pin.standing != standing);
        if meant.is_empty() {
            return Err(none(name));
        }
        for pin in meant {
            let look = Looked { mount: pin.mount, tool: Some(pin.tool), kind: Some(pin.kind), hash: Some(pin.hash) };
            let set: PinsShown = match gate::running(place)? {
                Some(gate) => {
                    let answer = threads::wait(gate.post(path, &serde_json::to_value(&look).unwrap_or_default()))??;
                    serde_json::from_slice(&answer).map_err(|e| Failure::Failed(format!("the gate's answer can't be read: {e}")))?
                }
                None => gateway::pins::look(&*DiskStores::at(&places::state_dir()?), &look, standing).map_err(failed)?,
            };
            done.pins.extend(set.pins);
        }
    }
    if output.wants_json() {
        return output.json(&done);
    }
    done.pins.iter().try_for_each(|pin| output.line(&format!("{} {}", standing.as_str(), printable(&pin.named()))))
}

fn failed(refusal: Refusal) -> Failure {
    match refusal.kind {
        RefusalKind::NotFound => Failure::NotFound(refusal.message),
        RefusalKind::Failed | RefusalKind::Refused | RefusalKind::TooMany => Failure::Failed(refusal.message),
    }
}

fn is_meant(pin: &PinShown, name: &str) -> bool {
    pin.mount == name || format!("{}.{}", pin.mount, pin.tool) == name
}

fn none(name: &str) -> Failure {
    Failure::NotFound(format!("no definition of `{}` waits\n  `banyan pins list --all` shows all that are known", printable(name)))
}

fn list(PinsShown { pins }: &PinsShown, output: &Output) -> Result<(), Failure> {
    if output.wants_json() {
        return output.json(&PinsShown { pins: pins.clone() });
    }
    if pins.is_empty() {
        return output.line("no definition waits");
    }
    let mut rows = vec![["NAME", "STANDS", "WHY", "SINCE", "CONCERNS"].map(str::to_owned).to_vec()];
    for pin in pins {
        let since = format!("{} ago", table::duration(time::now().saturating_sub(pin.since)));
        let concerns: Vec<String> = pin.concerns.iter().map(concern).collect();
        let cells = [pin.named(), pin.standing.as_str().to_owned(), pin.why.as_str().to_owned(), since, concerns.join(", ")];
        rows.push(cells.iter().map(|cell| printable(cell)).collect());
    }
    table::lines(&[Align::Left; 5], &rows).iter().try_for_each(|line| output.line(line))?;
    output.remark(&output.paint_remark(Look::Dim, "`banyan pins show NAME` says what differs, `banyan pins accept NAME` takes it"));
    Ok(())
}

fn show(PinsShown { mut pins }: PinsShown, name: &str, output: &Output) -> Result<(), Failure> {
    pins.retain(|pin| is_meant(pin, name));
    let waits = |pin: &PinShown| pin.standing != Standing::Accepted;
    if pins.iter().any(waits) {
        pins.retain(waits);
    }
    if pins.is_empty() {
        return Err(none(name));
    }
    if output.wants_json() {
        return output.json(&PinsShown { pins });
    }
    for pin in &pins {
        let head = format!("{}  {} ({})", pin.named(), pin.standing.as_str(), pin.why.as_str());
        output.line(&output.paint(Look::Strong, &printable(&head)))?;
        for one in &pin.concerns {
            output.line(&output.paint(Look::Warn, &format!("  ! {}", printable(&concern(one)))))?;
        }
        if pin.differences.is_empty() {
            let value: serde_json::Value = serde_json::from_str(&pin.definition).unwrap_or_default();
            block("  ", &serde_json::to_string_pretty(&value).unwrap_or_else(|_| pin.definition.clone()), output)?;
        }
        for one in &pin.differences {
            output.line(&format!("  {} ({})", printable(&one.path), printable(&one.what)))?;
            one.before.iter().try_for_each(|text| block("    - ", text, output))?;
            one.after.iter().try_for_each(|text| block("    + ", text, output))?;
        }
    }
    Ok(())
}

fn block(mark: &str, text: &str, output: &Output) -> Result<(), Failure> {
    printable_lines(text).lines().try_for_each(|line| output.line(&format!("{mark}{line}")))
}

fn concern(concern: &Concern) -> String {
    match concern {
        Concern::Hidden => "holds characters that nobody sees".to_owned(),
        Concern::Runs(words) => format!("holds code or a command: {words:?}"),
        Concern::Takes(words) => format!("reaches for secrets, or sends something elsewhere: {words:?}"),
        Concern::Instructs(words) => format!("speaks to the model: {words:?}"),
        Concern::LooksLike(other) => format!("looks like {other}"),
        Concern::Names(other) => format!("speaks of {other}"),
    }
}
