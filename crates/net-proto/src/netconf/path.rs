//! YANG paths as XML: filters of reads, and configurations of edits. Namespaces come from the hello of the device. Knows no models: the device
//! judges nodes and values.

use quick_xml::escape::escape;
use serde_json::Value;

use super::value::{self, ValuePlace};
use super::{NAMESPACE, NetconfCapabilities};
use crate::fault::{Code, Fault};

/// Nodes of a path that are taken.
const DEEPEST: usize = 64;

/// Path of a data node: `/module:node/node[key='value']`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePath {
    steps: Vec<PathStep>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PathStep {
    name: String,
    namespace: String,
    keys: Vec<(String, String)>,
}

/// Operation of an edit (RFC 6241, section 7.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EditOperation {
    #[default]
    Merge,
    Replace,
    Create,
    Delete,
    Remove,
}

impl EditOperation {
    /// Names of all operations.
    pub const NAMES: [&str; 5] = ["merge", "replace", "create", "delete", "remove"];

    /// Operation with this name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Merge, Self::Replace, Self::Create, Self::Delete, Self::Remove];
        all.into_iter().find(|operation| operation.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Replace => "replace",
            Self::Create => "create",
            Self::Delete => "delete",
            Self::Remove => "remove",
        }
    }

    const fn is_removal(self) -> bool {
        matches!(self, Self::Delete | Self::Remove)
    }
}

impl NodePath {
    /// Reads a path; `/` is the root of all data.
    ///
    /// # Errors
    /// The path is no plain path, or names a module that the device does not have.
    pub fn read(path: &str, device: &NetconfCapabilities) -> Result<Self, Fault> {
        let odd = || Fault::new(Code::InvalidParams, "the path is none of the form /module:node/node[key='value']").at(path);
        let mut steps: Vec<PathStep> = Vec::new();
        for piece in pieces(path.trim()).ok_or_else(odd)? {
            let (node, keys) = step(piece).ok_or_else(odd)?;
            let (module, name) = node.split_once(':').map_or((None, node), |(module, name)| (Some(module), name));
            let namespace = match (module, steps.last()) {
                (Some(module), _) => value::namespace(module, device).map_err(|fault| fault.at(path))?,
                (None, Some(above)) => above.namespace.clone(),
                (None, None) => {
                    return Err(Fault::new(Code::InvalidParams, "the first node of a path names its module: /module:node").at(path));
                }
            };
            if !value::is_name(name) || steps.len() >= DEEPEST {
                return Err(odd());
            }
            steps.push(PathStep { name: name.to_owned(), namespace, keys });
        }
        Ok(Self { steps })
    }

    /// Filter for a subtree; `None` for all data.
    pub fn filter(&self) -> Option<String> {
        (!self.steps.is_empty()).then(|| self.within("", None))
    }

    /// Content of `<config>` for an edit of this node.
    ///
    /// # Errors
    /// The value does not fit the operation, or can't be written as XML.
    pub fn config(&self, operation: EditOperation, given: Option<&Value>, device: &NetconfCapabilities) -> Result<String, Fault> {
        let Some(last) = self.steps.last() else { return Err(Fault::new(Code::InvalidParams, "an edit names a node")) };
        let place = ValuePlace { device, namespace: &last.namespace };
        match (operation.is_removal(), given) {
            (true, Some(_)) => Err(Fault::new(Code::InvalidParams, format!("`{}` takes no value", operation.name()))),
            (true, None) => Ok(self.within("", Some(operation))),
            (false, None) => Err(Fault::new(Code::InvalidParams, format!("`{}` needs a value", operation.name()))),
            (false, Some(Value::Array(entries))) if last.keys.is_empty() && *entries != [Value::Null] => {
                let bodies = entries.iter().map(|entry| value::content(entry, &[], place)).collect::<Result<Vec<_>, _>>()?;
                let above = Self { steps: self.steps[..self.steps.len() - 1].to_vec() };
                let entries: String = bodies.iter().map(|body| last.element(body, Some(operation), above.namespace())).collect();
                Ok(above.within(&entries, None))
            }
            (false, Some(given)) => Ok(self.within(&value::content(given, &last.keys, place)?, Some(operation))),
        }
    }

    fn namespace(&self) -> &str {
        self.steps.last().map_or("", |step| &step.namespace)
    }

    /// Elements of the path around `inner`; the innermost one bears the operation.
    fn within(&self, inner: &str, operation: Option<EditOperation>) -> String {
        let mut out = inner.to_owned();
        for (depth, step) in self.steps.iter().enumerate().rev() {
            let above = depth.checked_sub(1).map_or("", |above| &self.steps[above].namespace);
            let operation = operation.filter(|_| depth + 1 == self.steps.len());
            out = step.element(&out, operation, above);
        }
        out
    }
}

impl PathStep {
    fn element(&self, inner: &str, operation: Option<EditOperation>, above: &str) -> String {
        let name = &self.name;
        let mut out = format!("<{name}");
        if self.namespace != above {
            out.push_str(&format!(" xmlns=\"{}\"", escape(self.namespace.as_str())));
        }
        // Merge is the default of every edit that is sent.
        if let Some(operation) = operation.filter(|operation| *operation != EditOperation::Merge) {
            out.push_str(&format!(" xmlns:nc=\"{NAMESPACE}\" nc:operation=\"{}\"", operation.name()));
        }
        if inner.is_empty() && self.keys.is_empty() {
            return out + "/>";
        }
        out.push('>');
        for (key, text) in &self.keys {
            out.push_str(&format!("<{key}>{}</{key}>", escape(text.as_str())));
        }
        out + inner + &format!("</{name}>")
    }
}

/// Steps of a path, cut at `/` outside of predicates; `None` for a path that ends within one.
pub(crate) fn pieces(path: &str) -> Option<Vec<&str>> {
    let path = path.strip_prefix('/')?;
    let (mut pieces, mut from, mut quote, mut is_inside) = (Vec::new(), 0, None, false);
    if path.is_empty() {
        return Some(pieces);
    }
    for (at, c) in path.char_indices() {
        match (quote, c) {
            (Some(open), _) => quote = (c != open).then_some(open),
            (None, '\'' | '"') if is_inside => quote = Some(c),
            (None, '[') if !is_inside => is_inside = true,
            (None, ']') if is_inside => is_inside = false,
            (None, '/') if !is_inside => {
                pieces.push(&path[from..at]);
                from = at + 1;
            }
            (None, '[' | ']') => return None,
            (None, _) => {}
        }
    }
    pieces.push(&path[from..]);
    (quote.is_none() && !is_inside).then_some(pieces)
}

/// Node of a step and its keys.
pub(crate) fn step(piece: &str) -> Option<(&str, Vec<(String, String)>)> {
    let (node, mut rest) = piece.split_at(piece.find('[').unwrap_or(piece.len()));
    let mut keys = Vec::new();
    while let Some(inside) = rest.strip_prefix('[') {
        let (name, given) = inside.split_once('=')?;
        let name = name.trim();
        let name = name.split_once(':').map_or(name, |(_, name)| name);
        let quote = given.trim_start().chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (text, after) = given.trim_start()[1..].split_once(quote)?;
        if !value::is_name(name) || !value::is_text(text) {
            return None;
        }
        keys.push((name.to_owned(), text.to_owned()));
        rest = after.trim_start().strip_prefix(']')?;
    }
    rest.is_empty().then_some((node, keys))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::XmlTree;
    use super::*;

    fn device() -> NetconfCapabilities {
        let uris = ["urn:if?module=ietf-interfaces&revision=2018-02-20", "urn:ip?module=ietf-ip", "urn:type?module=iana-if-type"];
        NetconfCapabilities { session: None, uris: uris.map(str::to_owned).into() }
    }

    fn config(path: &str, operation: EditOperation, given: Option<&Value>) -> Result<String, Fault> {
        NodePath::read(path, &device()).and_then(|path| path.config(operation, given, &device()))
    }

    #[test]
    fn nm_02_a_path_is_a_filter() {
        let path = NodePath::read("/ietf-interfaces:interfaces/interface[name='a<b/c']/ietf-ip:ipv4", &device()).unwrap();
        let wanted = "<interfaces xmlns=\"urn:if\"><interface><name>a&lt;b/c</name><ipv4 xmlns=\"urn:ip\"/></interface></interfaces>";
        assert_eq!(path.filter().as_deref(), Some(wanted));
        assert_eq!(NodePath::read("/", &device()).unwrap().filter(), None);
    }

    #[test]
    fn nm_02_what_is_no_plain_path_is_refused() {
        for odd in [
            "",
            "a",
            "//a",
            "/ietf-interfaces:a//b",
            "/ietf-interfaces:a[1]",
            "/ietf-interfaces:a[b='c'",
            "/ietf-interfaces:a]",
            "/a",
            "/ietf-interfaces:*",
            "/ietf-interfaces:a/..",
            "/ietf-interfaces:a[b='c']x",
            "/ietf-interfaces:a[last()]",
            "/ietf-interfaces:a[b='\u{0}']",
        ] {
            assert_eq!(NodePath::read(odd, &device()).unwrap_err().code, Code::InvalidParams, "{odd}");
        }
        assert_eq!(NodePath::read("/absent:a", &device()).unwrap_err().code, Code::ConfigIncompatible);
    }

    #[test]
    fn nm_02_an_edit_holds_operation_keys_and_value() {
        let path = "/ietf-interfaces:interfaces/interface[name='lo1']";
        let given = json!({ "name": "lo1", "type": "iana-if-type:softwareLoopback", "ietf-ip:ipv4": { "address": [{ "ip": "10.0.0.1" }, { "ip": "10.0.0.2" }] } });
        let wanted = "<interfaces xmlns=\"urn:if\"><interface><name>lo1</name><type xmlns:iana-if-type=\"urn:type\">iana-if-type:softwareLoopback</type>\
            <ipv4 xmlns=\"urn:ip\"><address><ip>10.0.0.1</ip></address><address><ip>10.0.0.2</ip></address></ipv4></interface></interfaces>";
        assert_eq!(config(path, EditOperation::Merge, Some(&given)).as_deref(), Ok(wanted));
        let gone = config(path, EditOperation::Delete, None).unwrap();
        assert!(gone.contains("nc:operation=\"delete\"><name>lo1</name></interface>"), "{gone}");
        let several =
            config("/ietf-interfaces:interfaces/interface", EditOperation::Create, Some(&json!([{ "name": "a" }, { "name": "b" }])))
                .unwrap();
        assert_eq!(several.matches("nc:operation=\"create\"").count(), 2, "{several}");
    }

    #[test]
    fn nm_02_values_that_do_not_fit_are_refused() {
        let path = "/ietf-interfaces:interfaces/interface[name='lo1']";
        for (operation, given) in [
            (EditOperation::Delete, Some(json!({}))),
            (EditOperation::Merge, None),
            (EditOperation::Merge, Some(json!({ "name": "lo2" }))),
            (EditOperation::Merge, Some(json!({ "a b": 1 }))),
            (EditOperation::Merge, Some(json!({ "@name": {} }))),
            (EditOperation::Merge, Some(json!({ "description": "\u{1}" }))),
        ] {
            assert_eq!(config(path, operation, given.as_ref()).unwrap_err().code, Code::InvalidParams, "{given:?}");
        }
        assert_eq!(config("/", EditOperation::Merge, Some(&json!({}))).unwrap_err().code, Code::InvalidParams);
    }

    proptest! {
        #[test]
        fn nm_02_any_text_stays_within_its_element(text in "[ -~äöü\n]{0,30}", key in "[ -&(-~]{0,20}") {
            let path = format!("/ietf-interfaces:interfaces/interface[name='{key}']");
            let built = config(&path, EditOperation::Merge, Some(&json!({ "description": text }))).unwrap();
            let tree = XmlTree::read(&format!("<rpc-reply><data>{built}</data></rpc-reply>")).unwrap();
            prop_assert_eq!(tree.json(&device()), json!({ "ietf-interfaces:interfaces": { "interface": {
                "name": if key.trim().is_empty() { Value::Null } else { key.as_str().into() },
                "description": if text.trim().is_empty() { Value::Null } else { text.as_str().into() } } } }));
        }

        #[test]
        fn nm_02_any_path_is_read_or_refused(path in "(/|a|ietf-interfaces:|\\[|\\]|=|'|\"|b| ){0,30}") {
            if let Ok(read) = NodePath::read(&path, &device()) {
                let message = format!("<rpc-reply><data>{}</data></rpc-reply>", read.filter().unwrap_or_default());
                prop_assert!(XmlTree::read(&message).is_ok());
            }
        }
    }
}
