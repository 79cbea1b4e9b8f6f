//! `banyan stub add`: asks a part for its table, and writes a section with a tool for each row, to be named by a person. Names nothing itself:
//! a part can't.

use clap::Args;
use serde_json::json;
use stub_proto::table::{PartTable, TableRow, ValueKind};
use toml_edit::{Array, InlineTable, Item, Table, value};

use super::{BenchWire, connected, unnamed};
use crate::arguments::Place;
use crate::document::Document;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;
use crate::threads;

/// A part to be asked and written down.
#[derive(Args)]
pub(super) struct AddedStub {
    /// The name in front of its tools
    name: String,
    #[command(flatten)]
    wire: BenchWire,
}

impl AddedStub {
    pub(super) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let mut document = Document::open(place)?;
        let section = document.section("stub")?;
        section.set_implicit(true);
        if section.contains_key(&self.name) {
            return Err(Failure::Refused(format!("there is a part `{}` already", printable(&self.name))));
        }
        let table = threads::wait(async {
            let settings = unnamed(&self.wire)?;
            let (line, table) = connected(&settings).await?;
            line.close().await;
            Ok::<_, Failure>(table)
        })??;
        let table = table.filter(|table| !table.rows.is_empty());
        let table = table.ok_or_else(|| Failure::Failed("the part lists no tools: write its section by hand".into()))?;
        section.insert(&self.name, Item::Table(self.section(&table)?));
        document.check()?;
        document.write()?;
        let file = document.path.display();
        if output.wants_json() {
            return output.json(&json!({ "stub": self.name, "tools": table.rows.len(), "file": document.path }));
        }
        output.line(&format!("added to {file}: {} tools. Give them names, descriptions and bounds there", table.rows.len()))
    }

    fn section(&self, table: &PartTable) -> Result<Table, Failure> {
        let mut section: Table = [("port", value(&self.wire.port)), ("speed", value(i64::from(self.wire.speed)))].into_iter().collect();
        if let Some(bus) = self.wire.bus()? {
            let mut can = InlineTable::new();
            can.extend([("to", i64::from(bus.to)), ("from", i64::from(bus.from)), ("bit_rate", i64::from(bus.bits()))]);
            if bus.is_extended {
                can.insert("extended", true.into());
            }
            section.insert("can", value(can));
        }
        let mut tools = Table::new();
        tools.set_implicit(true);
        for row in &table.rows {
            tools.insert(&format!("tool_{}", row.tool), Item::Table(tool(row)));
        }
        section.insert("tool", Item::Table(tools));
        Ok(section)
    }
}

fn tool(row: &TableRow) -> Table {
    let mut tool: Table =
        [("id", value(i64::from(row.tool))), ("description", value("Say here what the tool does."))].into_iter().collect();
    let named = |name: String, kind: ValueKind| {
        let mut named = InlineTable::new();
        named.insert("name", name.into());
        named.insert("kind", kind.word().into());
        named
    };
    if !row.arguments.is_empty() {
        let arguments: Array = (1..).zip(&row.arguments).map(|(place, kind)| named(format!("argument_{place}"), *kind)).collect();
        tool.insert("arguments", value(arguments));
    }
    match row.answer {
        ValueKind::Map | ValueKind::Array | ValueKind::Null => {}
        kind @ (ValueKind::Uint | ValueKind::Int | ValueKind::Bytes | ValueKind::Text | ValueKind::Bool | ValueKind::Float) => {
            drop(tool.insert("results", value(Array::from_iter([named("result".into(), kind)]))))
        }
    }
    tool
}
