//! Compares a parsed file with the JSON Schema, and finds every unknown key and every wrong type at once, with its place. Does not judge
//! texts.

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::Flaw;
use super::suggest;

/// Keys of other programs' files, and ours.
const FOREIGN: [(&str, &str); 16] = [
    ("context_servers", "mount"),
    ("disabledTools", "exclude"),
    ("enabledTools", "include"),
    ("environment", "env"),
    ("httpUrl", "url"),
    ("mcpServers", "mount"),
    ("mcp_servers", "mount"),
    ("mounts", "mount"),
    ("profiles", "profile"),
    ("serverUrl", "url"),
    ("server", "mount"),
    ("servers", "mount"),
    ("startup_timeout_sec", "start_timeout"),
    ("tokens", "token"),
    ("tool_timeout_sec", "timeout"),
    ("type", "transport"),
];

/// Finds everything in `table` against `schema`.
pub(super) fn flaws(table: &Spanned<DeTable<'_>>, schema: &Value) -> Vec<Flaw> {
    let mut walk = Walk { root: schema, path: Vec::new(), flaws: Vec::new() };
    walk.table(table.span(), table.get_ref(), schema);
    walk.flaws
}

struct Walk<'a> {
    root: &'a Value,
    path: Vec<String>,
    flaws: Vec<Flaw>,
}

impl<'a> Walk<'a> {
    fn table(&mut self, span: std::ops::Range<usize>, table: &DeTable<'_>, schema: &'a Value) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties").filter(|schema| schema.is_object());
        let mut meant: Vec<String> = Vec::new();
        for (key, value) in table {
            let name: &str = key.get_ref();
            match properties.and_then(|known| known.get(name)).or(others) {
                Some(schema) => {
                    self.path.push(name.to_owned());
                    self.value(value, schema);
                    self.path.pop();
                }
                None => {
                    let known = properties.into_iter().flatten().map(|(name, _)| name.as_str());
                    let flaw = self.unknown(name, &known.collect::<Vec<_>>());
                    let near = flaw.meant.clone();
                    self.flaws.push(Flaw { span: key.span(), ..flaw });
                    meant.extend(near);
                }
            }
        }
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            let name = name.as_str().unwrap_or_default();
            if !table.contains_key(name) {
                let flaw = Flaw::new(span.clone(), format!("{} needs `{name}`", self.place()));
                let flaw = Flaw { follows: meant.iter().any(|key| key == name), ..flaw };
                self.flaws.push(with_example(flaw, properties.and_then(|known| known.get(name))));
            }
        }
    }

    fn unknown(&self, name: &str, known: &[&str]) -> Flaw {
        let place = if self.path.is_empty() { "at the top".to_owned() } else { format!("in `{}`", self.path.join(".")) };
        let flaw = Flaw::new(0..0, format!("unknown key `{name}` {place}"));
        let foreign = FOREIGN.iter().find(|(theirs, ours)| *theirs == name && known.contains(ours)).map(|&(_, ours)| ours);
        let near = foreign.or_else(|| suggest::nearest(name, known.iter().copied()));
        let flaw = Flaw { meant: near.map(str::to_owned), ..flaw };
        match near {
            Some("mount") if name == "mcpServers" => {
                flaw.help("Banyan's section is `mount`; `banyan import FILE.json --write` turns a client's file into mounts")
            }
            Some(near) => flaw.help(format!("did you mean `{near}`?")),
            None => flaw.help(format!("known here: {}", known.join(", "))),
        }
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, schema: &'a Value) {
        let schema = self.branch(value.get_ref(), schema);
        let found = value.get_ref();
        if !admits(schema, found) {
            let alternatives = self.alternatives(schema);
            let wanted = alternatives.into_iter().filter_map(kind).filter_map(kind_named).collect::<Vec<_>>().join(" or ");
            let flaw = Flaw::new(value.span(), format!("{} is {}, and must be {wanted}", self.place(), kind_of(found)));
            // A text where none belongs may be anybody's: an address or a token that came one table too high.
            let is_telling = matches!(found, DeValue::Array(_) | DeValue::String(_) | DeValue::Table(_));
            let flaw = with_example(flaw, Some(schema));
            self.flaws.push(if is_telling || self.is_secret() { flaw.secret() } else { flaw });
            return;
        }
        match found {
            DeValue::Table(table) => self.table(value.span(), table, schema),
            DeValue::Array(items) => {
                for item in items.iter() {
                    self.value(item, schema.get("items").unwrap_or(&Value::Null));
                }
            }
            DeValue::String(text) => self.choice(value.span(), text, schema),
            DeValue::Integer(_) => self.minimum(value, schema),
            DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Float(_) => {}
        }
    }

    fn choice(&mut self, span: std::ops::Range<usize>, text: &str, schema: &Value) {
        let choices = choices(schema);
        if choices.is_empty() || choices.contains(&text) {
            return;
        }
        let all = choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", ");
        let flaw = Flaw::new(span, format!("{} is \"{text}\", and must be one of {all}", self.place()));
        self.flaws.push(match suggest::nearest(text, choices.iter().copied()) {
            Some(near) => flaw.help(format!("did you mean `{near}`?")),
            None => flaw,
        });
    }

    fn minimum(&mut self, value: &Spanned<DeValue<'_>>, schema: &Value) {
        let least = schema.get("minimum").and_then(Value::as_i64).unwrap_or(i64::MIN);
        let most = schema.get("maximum").and_then(Value::as_i64).unwrap_or(i64::MAX);
        let number = value.get_ref().as_integer().and_then(|n| i64::from_str_radix(n.as_str(), n.radix()).ok());
        if number.is_none_or(|number| number < least) {
            self.flaws.push(Flaw::new(value.span(), format!("{} must be at least {least}", self.place())));
        } else if number > Some(most) {
            self.flaws.push(Flaw::new(value.span(), format!("{} must be at most {most}", self.place())));
        }
    }

    /// Picks the alternative of a schema for the value's type; the schema itself where none fits.
    fn branch(&self, value: &DeValue<'_>, schema: &'a Value) -> &'a Value {
        let alternatives = self.alternatives(schema);
        let only = (alternatives.len() == 1).then(|| alternatives[0]);
        alternatives.into_iter().find(|schema| admits(schema, value)).or(only).unwrap_or(schema)
    }

    /// Lists the alternatives of a schema, references followed.
    fn alternatives(&self, schema: &'a Value) -> Vec<&'a Value> {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
        let schema = target.and_then(|path| self.root.pointer(path)).unwrap_or(schema);
        match schema.get("anyOf").and_then(Value::as_array) {
            Some(schemas) => schemas.iter().flat_map(|schema| self.alternatives(schema)).collect(),
            None => vec![schema],
        }
    }

    fn place(&self) -> String {
        if self.path.is_empty() { "the file".to_owned() } else { format!("`{}`", self.path.join(".")) }
    }

    fn is_secret(&self) -> bool {
        super::is_secret_path(self.path.iter().map(String::as_str))
    }
}

fn kind(schema: &Value) -> Option<&str> {
    let described = (!choices(schema).is_empty()).then_some("string");
    schema.get("type").and_then(Value::as_str).or(described)
}

fn choices(schema: &Value) -> Vec<&str> {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    let described = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    listed.chain(described.filter_map(|choice| choice.get("const"))).filter_map(Value::as_str).collect()
}

fn admits(schema: &Value, value: &DeValue<'_>) -> bool {
    let name = match value {
        DeValue::Array(_) => "array",
        DeValue::Boolean(_) => "boolean",
        DeValue::Datetime(_) => "datetime",
        DeValue::Float(_) => "number",
        DeValue::Integer(_) => "integer",
        DeValue::String(_) => "string",
        DeValue::Table(_) => "object",
    };
    match kind(schema) {
        Some(kind) => kind == name,
        None => schema.get("anyOf").is_none() && schema.get("$ref").is_none(),
    }
}

fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::Array(_) => "a list",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Float(_) => "a fraction",
        DeValue::Integer(_) => "a number",
        DeValue::String(_) => "a string",
        DeValue::Table(_) => "a table",
    }
}

fn kind_named(name: &str) -> Option<&'static str> {
    match name {
        "array" => Some("a list"),
        "boolean" => Some("true or false"),
        "integer" => Some("a whole number"),
        "object" => Some("a table"),
        "string" => Some("a string"),
        _ => None,
    }
}

fn with_example(flaw: Flaw, schema: Option<&Value>) -> Flaw {
    match schema.and_then(|schema| schema.get("examples")).and_then(|examples| examples.get(0)) {
        Some(example) => flaw.help(format!("for example {example}")),
        None => flaw,
    }
}
