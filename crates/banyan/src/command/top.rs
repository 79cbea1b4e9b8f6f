//! `banyan top`: the activity of the running gate, live in the terminal. Does not draw the picture.

mod activity;

use std::time::Duration;

use activity::Activity;
use clap::Args;
use gateway::admin::client::AdminClient;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::screen::{self, Screen};
use crate::signals::Signals;
use crate::{gate, table, threads, time};

/// Time for a gate to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// Columns and rows of a terminal that does not tell.
const USUAL: (usize, usize) = (80, 24);
/// Keys that end the view: `q`, Ctrl-C and Ctrl-D.
const ENDING: [u8; 4] = [b'q', b'Q', 3, 4];

/// Shows calls, servers and waiting approvals of the running gate, until `q`.
#[derive(Args)]
pub(crate) struct Top {
    /// Print one picture and end, as without a terminal
    #[arg(long)]
    once: bool,
    /// Time between two pictures
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    every: u64,
}

impl Top {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        threads::wait(async {
            if output.wants_json() {
                return output.json(&activity(&gate).await?);
            }
            if self.once || !Screen::is_there() {
                let width = screen::size().map_or(usize::MAX, |(columns, _)| columns);
                let lines = activity(&gate).await?.picture(time::now(), width, None, output);
                return lines.iter().try_for_each(|line| output.line(line));
            }
            self.live(gate, place, output).await
        })?
    }

    async fn live(&self, gate: AdminClient, place: &Place, output: &Output) -> Result<(), Failure> {
        let mut signals = Signals::new()?;
        let failed = |e: std::io::Error| Failure::Failed(format!("signals can't be received: {e}"));
        let mut resized = signal(SignalKind::window_change()).map_err(failed)?;
        let mut ticks = interval(Duration::from_secs(self.every));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let screen = Screen::occupy()?;
        let mut keys = screen::keys();
        let mut view = View { gate, seen: None, trouble: None };
        loop {
            tokio::select! {
                _ = ticks.tick() => view.refresh(place).await,
                _ = resized.recv() => {}
                () = signals.stop() => return Ok(()),
                key = keys.recv() => match key {
                    Some(key) if !ENDING.contains(&key) => continue,
                    Some(_) | None => return Ok(()),
                },
            }
            screen.show(&view.lines(output))?;
        }
    }
}

/// The last picture, and the reason why no newer picture is there.
struct View {
    gate: AdminClient,
    seen: Option<Activity>,
    trouble: Option<String>,
}

impl View {
    /// Asks the gate; a gate that runs anew is found again.
    async fn refresh(&mut self, place: &Place) {
        match activity(&self.gate).await {
            Ok(activity) => (self.seen, self.trouble) = (Some(activity), None),
            Err(why) => {
                self.trouble = Some(why.to_string());
                if let Ok(Some(gate)) = gate::running(place) {
                    self.gate = gate;
                }
            }
        }
    }

    fn lines(&self, output: &Output) -> Vec<String> {
        let (width, height) = screen::size().unwrap_or(USUAL);
        let foot = match &self.trouble {
            Some(why) => output.paint(Look::Bad, &format!("not connected: {}", printable(&table::first_line(why, width)))),
            None => output.paint(Look::Dim, "q ends; `banyan approve ID` and `banyan console` do more"),
        };
        let room = height.saturating_sub(1);
        let mut lines = self.seen.as_ref().map(|seen| seen.picture(time::now(), width, Some(room), output)).unwrap_or_default();
        lines.resize(room, String::new());
        lines.push(table::cut(&foot, width));
        lines
    }
}

async fn activity(gate: &AdminClient) -> Result<Activity, Failure> {
    let answers = async {
        let status = gate.get("/-/status", &[]).await?;
        let overview = gate.get("/-/overview", &[]).await?;
        Ok(Activity::new(status, overview, &gate.get("/-/approvals", &[]).await?))
    };
    let late = || Failure::Failed(format!("the gate did not answer within {}", table::duration(ANSWER.as_secs())));
    timeout(ANSWER, answers).await.unwrap_or_else(|_| Err(late()))
}
