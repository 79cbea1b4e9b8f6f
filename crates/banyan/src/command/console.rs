//! `banyan console`: opens the running gate's console in a browser, signed in. What the console shows is the gate's work, not done here.

use clap::Args;
use gateway::admin::shapes::ConsoleLink;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::{gate, table, threads};

/// Opens the console of the running gate.
#[derive(Args)]
#[command(after_help = "The link signs in whoever opens it first, and is good for two minutes. From another machine, forward the \
    gate's port (`ssh -L 7411:localhost:7411 HOST`) and open what `banyan console --print` says there.")]
pub(crate) struct Console {
    /// Only print the link
    #[arg(short, long)]
    print: bool,
}

impl Console {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        let answer = threads::wait(gate.post("/-/console/code", &()))??;
        let link: ConsoleLink =
            serde_json::from_slice(&answer).map_err(|e| Failure::Failed(format!("the gate's answer can't be read: {e}")))?;
        if output.wants_json() {
            return output.json(&link);
        }
        let is_open = !self.print && runtime::browser::open(&link.url);
        output.line(&link.url)?;
        let lasts = table::duration(link.expires_in);
        output.remark(&if is_open {
            format!("your browser was told to open it; it is good once, within {lasts}")
        } else {
            format!("open it within {lasts}; it is good once")
        });
        Ok(())
    }
}
