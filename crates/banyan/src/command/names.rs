//! `banyan names`: how the names that a client is shown and the tools' own names belong together. Does not choose names.

use clap::Args;
use gateway::admin::shapes::ToolRow;
use serde::Serialize;

use crate::arguments::Place;
use crate::asked;
use crate::client_name::ClientName;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::table::{self, Align};
use crate::threads;

/// Meanings of the last column.
const REASONS: &str = "\
Reasons:
  kept           the name in the tree, with the sign between its parts that the client takes
  escaped        characters that the client does not take are replaced
  shortened      the name was too long for the client: its end is a hash
  disambiguated  two tools would have had the name: its end is a hash
  renamed        a profile gives the tool this name";

/// Shows the names of each tool: for a client, in the tree, and at its server.
#[derive(Args)]
#[command(after_help = REASONS)]
pub(crate) struct Names {
    /// As this client sees them: a name of `banyan connect`, or the name that another program calls itself
    #[arg(long, value_name = "NAME", value_parser = ClientName::read)]
    client: Option<ClientName>,
}

/// `banyan names --json`.
#[derive(Serialize)]
struct Report<'a> {
    client: Option<&'a str>,
    names: Vec<Name<'a>>,
}

#[derive(Serialize)]
struct Name<'a> {
    shown: &'a str,
    dotted: &'a str,
    original: &'a str,
    mount: &'a str,
    /// Reason for the form of the shown name.
    reason: &'a str,
}

impl<'a> Name<'a> {
    fn of(tool: &'a ToolRow) -> Self {
        let ToolRow { shown, dotted, original, mount, reason, .. } = tool;
        Self { shown, dotted, original, mount, reason }
    }
}

impl Names {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        ClientName::remark(self.client.as_ref(), output);
        let client = self.client.as_ref().map(ClientName::as_str);
        let shown = threads::wait(asked::tools(place, client, output))??;
        let names: Vec<Name<'_>> = shown.tools.iter().map(Name::of).collect();
        if output.wants_json() {
            return output.json(&Report { client, names });
        }
        let head = ["SHOWN", "IN THE TREE", "BY ITS SERVER", "SHOWN SO BECAUSE"].map(str::to_owned).to_vec();
        let rows =
            names.iter().map(|n| vec![printable(n.shown), printable(n.dotted), printable(n.original), output.paint(Look::Dim, n.reason)]);
        let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
        table::lines(&[Align::Left; 4], &rows).iter().try_for_each(|l| output.line(l))
    }
}
