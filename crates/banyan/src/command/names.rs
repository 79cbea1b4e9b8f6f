//! `banyan names`: how the names that a client is shown and the tools' own names belong together. Does not choose names.

use clap::Args;
use gateway::admin::shapes::ToolRow;
use serde::Serialize;

use crate::arguments::Place;
use crate::asked::Asked;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::runtime;
use crate::table::{self, Align};

/// Shows what each tool is called for a client, in the tree, and by its server.
#[derive(Args)]
pub(crate) struct Names {
    /// As this client sees them (the name it gives itself, like `claude-code`)
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
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
    /// Whether the server's own name had to be changed beyond putting the mount in front.
    mapped: bool,
}

impl<'a> Name<'a> {
    fn of(tool: &'a ToolRow) -> Self {
        let ToolRow { shown, dotted, original, mount, .. } = tool;
        Self { shown, dotted, original, mount, mapped: !plain(shown, mount, original) }
    }
}

impl Names {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let client = self.client.as_deref();
        let shown = runtime::wait(async { Asked::find(place)?.tools(client).await })??;
        let names: Vec<Name<'_>> = shown.tools.iter().map(Name::of).collect();
        if output.wants_json() {
            return output.json(&Report { client, names });
        }
        let head = ["SHOWN", "IN THE TREE", "BY ITS SERVER", ""].map(str::to_owned).to_vec();
        let rows = names.iter().map(|n| {
            let mapped = if n.mapped { output.paint(Look::Warn, "mapped") } else { String::new() };
            vec![n.shown.to_owned(), n.dotted.to_owned(), n.original.to_owned(), mapped]
        });
        let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
        table::lines(&[Align::Left; 4], &rows).iter().try_for_each(|l| output.line(l))
    }
}

/// Whether `shown` is the mount and the server's own name with nothing but a separator between.
fn plain(shown: &str, mount: &str, original: &str) -> bool {
    let rest = shown.strip_prefix(mount).and_then(|r| r.strip_suffix(original));
    rest.is_some_and(|separator| separator == "." || separator == "__")
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_changed_name_is_told_from_a_prefixed_one() {
        assert!(plain("files__read", "files", "read"));
        assert!(plain("files.read", "files", "read"));
        assert!(!plain("files__get_user", "files", "getUser"));
        assert!(!plain("read", "files", "read"));
    }
}
