//! Data of a reply as a tree: normal form for people, diffs and revisions; JSON; differences. Knows no models, so every leaf is a text.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use quick_xml::escape::escape;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use serde_json::{Map, Value};

use super::NetconfCapabilities;
use super::value::is_name;
use crate::redact::{MARK, holds_keys, is_secret_node};

/// Elements within each other; deeper ones are refused.
const DEEPEST: usize = 256;
/// Elements of a reply that are taken: each costs some 200 bytes.
const MOST_ELEMENTS: usize = 400_000;
/// Prefixes in force at one place.
const MOST_PREFIXES: usize = 256;
/// Bytes of namespaces in the normal form, which writes a namespace where a device may have a prefix.
const MOST_NAMESPACES: usize = 32 << 20;
/// Levels with an indent of their own.
const DEEPEST_INDENT: usize = 16;
/// Differences that are told.
pub(crate) const MOST_DIFFERENCES: usize = 10_000;
/// Steps of a path in a difference, and characters of a name or text there.
const LONGEST_PATH: usize = 16;
const LONGEST_SHOWN: usize = 200;

/// Data below `<data>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XmlTree {
    nodes: Vec<XmlNode>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct XmlNode {
    name: String,
    namespace: Arc<str>,
    /// Attributes without the declarations of namespaces, as written.
    attributes: Vec<(String, String)>,
    /// Prefix at the begin of the text, with its namespace: the text may be an identity.
    prefix: Option<(String, Arc<str>)>,
    text: String,
    below: Vec<XmlNode>,
}

impl XmlTree {
    /// Reads the data of a whole `<rpc-reply>`. `Err` holds the reason for people.
    pub fn read(message: &str) -> Result<Self, String> {
        Self::below(message, &["rpc-reply", "data"])
    }

    /// Reads the event of a whole `<notification>`, without its time. `Err` holds the reason for people.
    pub fn event(message: &str) -> Result<Self, String> {
        let mut tree = Self::below(message, &["notification"])?;
        tree.nodes.retain(|node| node.name != "eventTime");
        Ok(tree)
    }

    /// Reads what stands below elements of these names.
    fn below(message: &str, names: &'static [&'static str]) -> Result<Self, String> {
        let mut walk = TreeWalk { names, ..TreeWalk::default() };
        let mut reader = Reader::from_str(message);
        loop {
            match reader.read_event().map_err(|error| format!("the XML is broken: {error}"))? {
                Event::Start(start) => walk.open(&start)?,
                Event::Empty(start) => {
                    walk.open(&start)?;
                    walk.close()?;
                }
                Event::End(_) => walk.close()?,
                Event::Text(found) => walk.text(&found.xml10_content()),
                Event::CData(found) => walk.text(&found),
                Event::GeneralRef(found) => match found.resolve_char_ref() {
                    Ok(Some(c)) => walk.text(c.encode_utf8(&mut [0; 4])),
                    _ => walk.text(named(&found)?),
                },
                Event::DocType(_) => return Err("a document type is not taken".to_owned()),
                Event::Eof => break,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
        if !walk.open.is_empty() {
            return Err("the XML breaks off".to_owned());
        }
        Ok(Self { nodes: walk.data })
    }

    /// Reads the normal form, as [`XmlTree::text`] writes it.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::read(&format!("<rpc-reply><data>{text}</data></rpc-reply>"))
    }

    /// True where the device holds no data.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Normal form: an element a line, prefixes resolved, the order of the device.
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.nodes.iter().for_each(|node| node.write(&mut out, "", 0));
        out
    }

    /// JSON with modules in names as RFC 7951 has them. Leaves are texts, and what stands there once is no list: types stand in the modules.
    pub fn json(&self, device: &NetconfCapabilities) -> Value {
        let modules: BTreeMap<&str, &str> = device.namespaces().map(|(module, uri)| (uri, module)).collect();
        object(&self.nodes, "", &modules)
    }

    /// Differences of `shown` from this tree, as paths: `-` is missing there, `+` is too much. The order of nodes does not count.
    pub fn differences(&self, shown: &Self) -> Vec<String> {
        let mut count = LeafCount::default();
        self.nodes.iter().for_each(|node| count.add(node, 0, 1));
        shown.nodes.iter().for_each(|node| count.add(node, 0, -1));
        count.written()
    }

    /// Paths of the leaves in which `shown` differs, without modules and keys; `None`: more than anybody reads.
    pub fn changed(&self, shown: &Self) -> Option<BTreeSet<String>> {
        let mut count = LeafCount::default();
        self.nodes.iter().for_each(|node| count.add(node, 0, 1));
        shown.nodes.iter().for_each(|node| count.add(node, 0, -1));
        // A container that gets its first node is not changed itself.
        let holders: HashSet<usize> = count.steps.iter().map(|(above, _)| *above).collect();
        let differing = count.counts.iter().filter(|((number, text), by)| **by != 0 && !(text.is_empty() && holders.contains(number)));
        let mut numbers: Vec<usize> = differing.map(|((number, _), _)| *number).take(MOST_DIFFERENCES + 1).collect();
        numbers.dedup();
        let path = |number: usize| {
            let mut names: Vec<String> = count.names(number).collect();
            names.reverse();
            format!("/{}", names.join("/"))
        };
        (numbers.len() <= MOST_DIFFERENCES).then(|| numbers.into_iter().map(path).collect())
    }
}

impl XmlNode {
    fn write(&self, out: &mut String, above: &str, depth: usize) {
        let (indent, name) = ("  ".repeat(depth.min(DEEPEST_INDENT)), &self.name);
        out.push_str(&format!("{indent}<{name}"));
        if &*self.namespace != above {
            out.push_str(&format!(" xmlns=\"{}\"", line(&self.namespace)));
        }
        if let Some((prefix, uri)) = &self.prefix {
            out.push_str(&format!(" xmlns:{prefix}=\"{}\"", line(uri)));
        }
        for (attribute, value) in &self.attributes {
            out.push_str(&format!(" {attribute}=\"{}\"", line(value)));
        }
        match (self.below.is_empty(), self.text.is_empty()) {
            (true, true) => out.push_str("/>\n"),
            (true, false) => out.push_str(&format!(">{}</{name}>\n", line(&self.text))),
            (false, _) => {
                out.push_str(">\n");
                self.below.iter().for_each(|node| node.write(out, &self.namespace, depth + 1));
                out.push_str(&format!("{indent}</{name}>\n"));
            }
        }
    }

    /// Name and text of the first leaf: keys come first in an entry of a list, and tell entries apart.
    fn key(&self) -> (&str, &str) {
        let first = self.below.first().filter(|first| first.below.is_empty() && !first.text.is_empty());
        first.map_or(("", ""), |key| (&key.name, &key.text))
    }

    /// The text, with the namespace in place of a prefix: prefixes are each server's own.
    fn value(&self) -> Cow<'_, str> {
        let rest = self.text.split_once(':').map(|(_, rest)| rest);
        self.prefix.as_ref().zip(rest).map_or_else(|| self.text.as_str().into(), |((_, uri), rest)| format!("{{{uri}}}{rest}").into())
    }

    fn json(&self, modules: &BTreeMap<&str, &str>) -> Value {
        if !self.below.is_empty() {
            return object(&self.below, &self.namespace, modules);
        }
        let rest = self.text.split_once(':').map(|(_, rest)| rest);
        match self.prefix.as_ref().and_then(|(_, uri)| modules.get(&**uri)).zip(rest) {
            Some((module, rest)) => format!("{module}:{rest}").into(),
            None if self.text.is_empty() => Value::Null,
            None => self.text.as_str().into(),
        }
    }
}

fn object(nodes: &[XmlNode], above: &str, modules: &BTreeMap<&str, &str>) -> Value {
    let mut members: Map<String, Value> = Map::new();
    for node in nodes {
        let module = Some(&*node.namespace).filter(|own| *own != above).and_then(|own| modules.get(own));
        let name = module.map_or_else(|| node.name.clone(), |module| format!("{module}:{}", node.name));
        let value = node.json(modules);
        match members.get_mut(&name) {
            None => {
                members.insert(name, value);
            }
            // A node alone is never an array, so an array holds the nodes before.
            Some(Value::Array(entries)) => entries.push(value),
            Some(one) => *one = Value::Array(vec![one.take(), value]),
        }
    }
    Value::Object(members)
}

/// Text for one line of the normal form.
fn line(text: &str) -> String {
    escape(text).replace('\n', "&#10;").replace('\r', "&#13;").replace('\t', "&#9;")
}

fn named(reference: &str) -> Result<&'static str, String> {
    let known = [("lt", "<"), ("gt", ">"), ("amp", "&"), ("quot", "\""), ("apos", "'")];
    let found = known.iter().find(|(name, _)| *name == reference).map(|(_, text)| *text);
    found.ok_or_else(|| format!("the XML refers to `{reference}`, which nobody declared"))
}

/// Leaves by path and text: wanted ones less shown ones. Each path is kept as its last step only, so that deep trees cost no more than flat ones.
#[derive(Default)]
struct LeafCount<'t> {
    /// Steps with the step above, the first one being 1.
    steps: Vec<(usize, &'t XmlNode)>,
    numbers: HashMap<(usize, &'t str, (&'t str, &'t str)), usize>,
    counts: BTreeMap<(usize, Cow<'t, str>), i64>,
}

impl<'t> LeafCount<'t> {
    fn add(&mut self, node: &'t XmlNode, above: usize, by: i64) {
        let next = self.steps.len() + 1;
        let number = *self.numbers.entry((above, &node.name, node.key())).or_insert(next);
        if number == next {
            self.steps.push((above, node));
        }
        if node.below.is_empty() {
            *self.counts.entry((number, node.value())).or_default() += by;
        }
        node.below.iter().for_each(|below| self.add(below, number, by));
    }

    fn written(&self) -> Vec<String> {
        let differing = self.counts.iter().filter(|(_, count)| **count != 0);
        let told = differing.map(|((number, text), count)| {
            let text = match text.is_empty() {
                true => String::new(),
                false if self.is_secret(*number, text) => format!(" = {MARK}"),
                false => format!(" = {}", line(&cut(text))),
            };
            format!("{} {}{text}", if *count > 0 { '-' } else { '+' }, self.path(*number))
        });
        let mut told: Vec<String> = told.take(MOST_DIFFERENCES).collect();
        told.sort_unstable();
        told
    }

    /// Names of a node and of the nodes above, upwards.
    fn names(&self, number: usize) -> impl Iterator<Item = String> {
        let step = |number: usize| number.checked_sub(1).and_then(|at| self.steps.get(at));
        std::iter::successors(step(number), move |(above, _)| step(*above)).map(|(_, node)| node.name.to_lowercase())
    }

    /// Recognizes a leaf that is a secret by its name, or by a node above.
    fn is_secret(&self, number: usize, text: &str) -> bool {
        let mut names = self.names(number);
        let Some(leaf) = names.next() else { return false };
        let (mut is_below_holder, mut is_below_secret) = (false, false);
        for name in names {
            is_below_holder |= holds_keys(&name);
            is_below_secret |= is_secret_node(&name, "", false);
        }
        is_below_secret || is_secret_node(&leaf, text, is_below_holder)
    }

    fn path(&self, number: usize) -> String {
        let mut steps = Vec::new();
        let mut at = number;
        while let Some((above, node)) = at.checked_sub(1).and_then(|at| self.steps.get(at)) {
            let (name, text) = node.key();
            let is_below_holder = name == "key" && self.names(at).any(|name| holds_keys(&name));
            let is_secret = is_secret_node(name, text, is_below_holder) || is_secret_node(&node.name, text, false);
            let text = if is_secret { MARK.into() } else { line(&cut(text)) };
            let key = if name.is_empty() { String::new() } else { format!("[{}='{text}']", cut(name)) };
            steps.push(format!("{}{key}", cut(&node.name)));
            at = *above;
            if steps.len() >= LONGEST_PATH {
                steps.push("…".to_owned());
                break;
            }
        }
        steps.reverse();
        format!("/{}", steps.join("/"))
    }
}

/// The begin of a text.
fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// Open elements, prefixes in force, and data so far.
#[derive(Debug, Default)]
struct TreeWalk {
    /// Names of the elements around the data.
    names: &'static [&'static str],
    open: Vec<XmlNode>,
    /// Prefixes with their namespaces and the depth of their element.
    prefixes: Vec<(String, Arc<str>, usize)>,
    elements: usize,
    /// Bytes of namespaces so far.
    namespaces: usize,
    data: Vec<XmlNode>,
}

impl TreeWalk {
    fn open(&mut self, start: &BytesStart<'_>) -> Result<(), String> {
        self.elements += 1;
        if self.open.len() >= DEEPEST {
            return Err(format!("the XML is deeper than {DEEPEST} elements"));
        }
        if self.elements > MOST_ELEMENTS {
            return Err(format!("the reply holds more than {MOST_ELEMENTS} elements: ask for a part of it"));
        }
        let mut attributes = Vec::new();
        for attribute in start.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| format!("an attribute is broken: {error}"))?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|error| format!("an attribute is broken: {error}"))?;
            let name: &str = attribute.key.as_ref();
            if !name.split(':').all(is_name) {
                return Err("the XML has an attribute without a name".to_owned());
            }
            match name.strip_prefix("xmlns") {
                Some(prefix) if prefix.is_empty() || prefix.starts_with(':') => {
                    self.prefixes.push((prefix.trim_start_matches(':').to_owned(), Arc::from(&*value), self.open.len()));
                }
                _ => attributes.push((name.to_owned(), value.into_owned())),
            }
        }
        if self.prefixes.len() > MOST_PREFIXES {
            return Err(format!("the XML has more than {MOST_PREFIXES} prefixes at one place"));
        }
        attributes.sort_unstable();
        let (prefix, local) = start.name().0.split_once(':').unwrap_or(("", start.name().0));
        if !is_name(local) {
            return Err("the XML has an element without a name".to_owned());
        }
        let namespace = self.namespace(prefix).unwrap_or_default();
        if self.open.last().is_none_or(|above| above.namespace != namespace) {
            self.spend(&namespace)?;
        }
        self.open.push(XmlNode { name: local.to_owned(), namespace, attributes, ..XmlNode::default() });
        Ok(())
    }

    fn namespace(&self, prefix: &str) -> Option<Arc<str>> {
        self.prefixes.iter().rev().find(|(known, ..)| known == prefix).map(|(_, uri, _)| Arc::clone(uri))
    }

    fn spend(&mut self, namespace: &str) -> Result<(), String> {
        self.namespaces += namespace.len();
        if self.namespaces > MOST_NAMESPACES {
            return Err(format!("the namespaces of the reply take more than {MOST_NAMESPACES} bytes"));
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        if let Some(node) = self.open.last_mut() {
            node.text.push_str(text);
        }
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(mut node) = self.open.pop() else { return Ok(()) };
        if !node.below.is_empty() || node.text.trim().is_empty() {
            node.text = String::new();
        }
        let prefix = node.text.split_once(':').map(|(prefix, _)| prefix).filter(|prefix| !prefix.is_empty());
        node.prefix = prefix.and_then(|prefix| Some((prefix.to_owned(), self.namespace(prefix)?)));
        if let Some((_, namespace)) = &node.prefix {
            self.spend(&Arc::clone(namespace))?;
        }
        self.prefixes.retain(|(.., depth)| *depth < self.open.len());
        let is_data = self.open.iter().map(|node| node.name.as_str()).eq(self.names.iter().copied());
        // Only the data is kept.
        let depth = self.open.len();
        match self.open.last_mut() {
            Some(_) if is_data => self.data.push(node),
            Some(above) if depth > self.names.len() => above.below.push(node),
            Some(_) | None => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const REPLY: &str = "<?xml version=\"1.0\"?>\n<nc:rpc-reply xmlns:nc=\"n\" xmlns:t=\"urn:type\" message-id=\"1\"><nc:data>\n <interfaces xmlns=\"urn:if\">\
        <interface><name>a</name><type>t:loopback</type><enabled>true</enabled></interface>\n\
        <interface><name>b</name><description>x &lt; &#10;y</description><p:ipv4 xmlns:p=\"urn:ip\"/></interface></interfaces></nc:data></nc:rpc-reply>";

    fn device() -> NetconfCapabilities {
        let uris = ["urn:if?module=ietf-interfaces", "urn:ip?module=ietf-ip", "urn:type?module=iana-if-type"];
        NetconfCapabilities { session: None, uris: uris.map(str::to_owned).into() }
    }

    #[test]
    fn nm_08_an_element_without_a_name_is_refused() {
        for text in r#"<?/>>|<a><:/></a>|<a><1/></a>|<a><b="c"/></a>|<a s:'>'p=""/>|<a xmlns:>="u">>:</a>|<a x:y:=""/>"#.split('|') {
            assert!(XmlTree::parse(&text.replace('?', "\n")).is_err(), "{text}");
        }
    }

    #[test]
    fn nm_12_changed_leaves_are_told_by_their_paths() {
        let config = |inner: &str| XmlTree::parse(&format!("<interfaces xmlns=\"urn:if\">{inner}</interfaces>")).unwrap();
        let entry = |name: &str, enabled: bool| config(&format!("<interface><name>{name}</name><enabled>{enabled}</enabled></interface>"));
        let changed = |old: &XmlTree, new: &XmlTree| old.changed(new).unwrap().into_iter().collect::<Vec<_>>();
        assert_eq!(changed(&entry("a", true), &entry("a", false)), ["/interfaces/interface/enabled"]);
        assert_eq!(changed(&config(""), &entry("a", true)), ["/interfaces/interface/enabled", "/interfaces/interface/name"]);
        assert!(entry("a", true).changed(&entry("a", true)).unwrap().is_empty());
    }

    #[test]
    fn nm_02_data_is_shown_by_lines_and_as_json() {
        let tree = XmlTree::read(REPLY).unwrap();
        assert_eq!(
            tree.text(),
            "<interfaces xmlns=\"urn:if\">\n  <interface>\n    <name>a</name>\n    <type xmlns:t=\"urn:type\">t:loopback</type>\n    \
             <enabled>true</enabled>\n  </interface>\n  <interface>\n    <name>b</name>\n    <description>x &lt; &#10;y</description>\n    \
             <ipv4 xmlns=\"urn:ip\"/>\n  </interface>\n</interfaces>\n"
        );
        assert_eq!(
            tree.json(&device()),
            json!({ "ietf-interfaces:interfaces": { "interface": [
                { "name": "a", "type": "iana-if-type:loopback", "enabled": "true" },
                { "name": "b", "description": "x < \ny", "ietf-ip:ipv4": null },
            ] } })
        );
    }

    #[test]
    fn nm_12_differences_hide_secrets_below_secret_nodes() {
        let tree = |secret: &str| {
            let text = format!(
                "<keys><key-string><clear>{secret}</clear></key-string><md5><key>{secret}</key></md5><community><name>{secret}</name><to>{secret}x\
                 </to></community><Shared-Secret>{secret}</Shared-Secret><community>65000:1</community></keys>"
            );
            XmlTree::parse(&text).unwrap()
        };
        let told = tree("Xq7canary9").differences(&tree("Yq7canary9")).join("\n");
        assert!(!told.contains("q7canary9"), "{told}");
        assert!(told.contains("- /keys/Shared-Secret = [redacted]") && told.contains("/md5[key='[redacted]']/key = [redacted]"), "{told}");
    }

    #[test]
    fn nm_09_trees_differ_by_nodes_not_order_or_prefixes() {
        let one = XmlTree::read(REPLY).unwrap();
        let other = "<interfaces xmlns=\"urn:if\"><interface><name>b</name><ipv4 xmlns=\"urn:ip\"/><description>x &lt; \ny</description></interface>\
            <interface><name>a</name><type xmlns:q=\"urn:type\">q:loopback</type><enabled>true</enabled></interface></interfaces>";
        assert_eq!(one.differences(&XmlTree::parse(other).unwrap()), Vec::<String>::new());
        let off = XmlTree::parse(&other.replace("true", "false")).unwrap();
        let path = "/interfaces/interface[name='a']/enabled";
        assert_eq!(one.differences(&off), [format!("+ {path} = false"), format!("- {path} = true")]);
        let renamed = XmlTree::parse(&other.replace("urn:type", "urn:other")).unwrap();
        assert_eq!(one.differences(&renamed).len(), 2);
    }

    #[test]
    fn nm_08_trees_too_large_or_cut_off_are_refused() {
        let deep = "<a>".repeat(300);
        let prefixes: String = (0..300).map(|n| format!("<a xmlns:p{n}='u'>")).collect();
        for bad in ["<a>", "<!DOCTYPE a><a/>", &deep, &prefixes, "<rpc-reply><data>&nosuch;</data></rpc-reply>"] {
            assert!(XmlTree::read(bad).is_err_and(|reason| !reason.is_empty()), "{bad}");
        }
        let spread = format!("<rpc-reply xmlns:p='{}'><data>{}</data></rpc-reply>", "u".repeat(1000), "<p:a/>".repeat(40_000));
        assert!(XmlTree::read(&spread).is_err_and(|reason| reason.contains("namespaces")));
        let many = format!("<rpc-reply><data>{}</data></rpc-reply>", "<a/>".repeat(MOST_ELEMENTS));
        assert!(XmlTree::read(&many).is_err_and(|reason| reason.contains("ask for a part")));
    }

    proptest! {
        #[test]
        fn nm_09_the_normal_form_is_read_back_as_the_same_tree(text in "(<a>|</a>|<b c='d'/>|<e xmlns='u'>|</e>|x|p:y|&lt;|&#10;|<f xmlns:p='v'>p:z</f>| ){0,30}") {
            if let Ok(tree) = XmlTree::parse(&text) {
                let again = XmlTree::parse(&tree.text());
                prop_assert_eq!(again.as_ref().map(XmlTree::text), Ok(tree.text()));
                prop_assert_eq!(tree.differences(&again.unwrap()), Vec::<String>::new());
            }
        }
    }
}
