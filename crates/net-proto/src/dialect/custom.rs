//! Dialects that users write: whole, or as additions to a dialect built in. Reads no file.

use serde_json::{Map, Value};

use super::{BUILT_IN, Dialect, DialectError, LONGEST_FILE};

/// Member that names the dialect which is extended.
const EXTENDS: &str = "extends";

impl Dialect {
    /// Reads the file of a dialect of a user.
    ///
    /// # Errors
    /// The text is no dialect, and no addition to one.
    pub fn from_user_file(name: &str, text: &str) -> Result<Self, DialectError> {
        if text.len() > LONGEST_FILE {
            return Err(DialectError::TooLarge);
        }
        let table: Value = toml::from_str(text).map_err(|error| DialectError::Syntax(error.to_string()))?;
        // A whole file is read as such, for errors with the line.
        if table.get(EXTENDS).is_none() && table.get("name").is_some() { Self::from_toml(text) } else { Self::from_user(name, table) }
    }

    /// Makes a dialect of a table. With `extends`, texts replace those of the dialect built in, and lists are added in front of its lists.
    ///
    /// # Errors
    /// The table is no dialect, and no addition to one.
    pub fn from_user(name: &str, table: Value) -> Result<Self, DialectError> {
        let Value::Object(mut table) = table else { return Err(DialectError::Syntax("a dialect is a table".to_owned())) };
        if Value::Object(table.clone()).to_string().len() > LONGEST_FILE {
            return Err(DialectError::TooLarge);
        }
        if let Some(base) = table.remove(EXTENDS) {
            let base = base.as_str().unwrap_or_default().to_owned();
            let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == base).ok_or(DialectError::UnknownBase { base })?;
            let mut whole: Map<String, Value> = toml::from_str(text).map_err(|error| DialectError::Syntax(error.to_string()))?;
            merge(&mut whole, table);
            table = whole;
        }
        table.insert("name".to_owned(), name.into());
        Self::made(serde_json::from_value(Value::Object(table)).map_err(|error| DialectError::Syntax(error.to_string()))?)
    }
}

/// Adds what a user wrote.
fn merge(base: &mut Map<String, Value>, own: Map<String, Value>) {
    for (key, own) in own {
        match (base.get_mut(&key), own) {
            (Some(Value::Object(base)), Value::Object(own)) => merge(base, own),
            (Some(Value::Array(base)), Value::Array(own)) => {
                let rest = std::mem::replace(base, own);
                base.extend(rest);
            }
            (_, own) => drop(base.insert(key, own)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::CommandClass;
    use crate::fault::Code;

    #[test]
    fn nm_02_a_users_dialect_adds_to_one_built_in() {
        let text = "extends = \"ios\"\n[commands]\ndangerous = [\"show secrets\"]\n[change]\nunit = \"seconds\"\n[[error]]\npattern = '^Oops'\ncode = \"HardwareFailure\"\n";
        let dialect = Dialect::from_user_file("house", text).unwrap();
        assert_eq!((dialect.name(), dialect.draft_name()), ("house", "cisco-ios"));
        assert_eq!(dialect.command("show secrets").unwrap().class, CommandClass::Dangerous);
        assert_eq!(dialect.command("sh ver").unwrap().class, CommandClass::Read);
        assert_eq!(dialect.fault("x", "Oops\n").unwrap().code, Code::HardwareFailure);
        assert_eq!(dialect.timed("revert {time}", 90), "revert 90");
        let whole = Dialect::source("vrp").unwrap();
        assert_eq!(Dialect::from_user_file("mine", whole).unwrap().draft_name(), "huawei-vrp");
    }

    #[test]
    fn nm_02_what_is_wrong_in_a_dialect_is_told() {
        let told = |text: &str| Dialect::from_user_file("x", text).unwrap_err().to_string();
        assert!(told("extends = \"iso\"\n").contains("built in: frr, ios, junos, vrp"));
        assert!(told("extends = \"ios\"\n[prompts]\nexec = 'x'\n").contains("prompts"));
        assert!(told("extends = \"ios\"\n[prompt]\nexec = '('\n").contains("expression"));
        assert!(told("extends = \"ios\"\n[[error]]\npattern = 'x'\ncode = \"Nonsense\"\n").contains("Nonsense"));
        assert!(told("title = \"x\"\n").contains("missing field"));
        assert!(told("= 3\n").contains("line 1"));
    }
}
