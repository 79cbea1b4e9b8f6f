//! YANG paths as names of nodes, for rules. Does not know models: modules and keys are left out.

use crate::netconf::{pieces, step};

/// Names of a plain path's nodes, in lower case; `None`: an expression that may mean other nodes than it names.
pub(super) fn nodes(path: &str) -> Option<Vec<String>> {
    let (mut nodes, mut node, mut quote, mut depth) = (Vec::new(), String::new(), None, 0_u32);
    for c in path.trim().strip_prefix('/').unwrap_or(path.trim()).chars() {
        match (quote, c) {
            (Some(open), _) => quote = (c != open).then_some(open),
            (None, '\'' | '"') if depth > 0 => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => depth = depth.checked_sub(1)?,
            (None, _) if depth > 0 => {}
            (None, '/') => nodes.push(name(&std::mem::take(&mut node))?),
            (None, _) => node.push(c),
        }
    }
    if quote.is_some() || depth > 0 {
        return None;
    }
    if !(node.is_empty() && nodes.is_empty()) {
        nodes.push(name(&node)?);
    }
    Some(nodes)
}

/// Nodes among the predicates of a path, each with the nodes above it; `None`: the path is no plain path.
pub(super) fn keys(path: &str) -> Option<Vec<Vec<String>>> {
    let (mut above, mut keys) = (Vec::new(), Vec::new());
    for piece in pieces(path.trim())? {
        let (node, found) = step(piece)?;
        above.push(name(node)?);
        for (key, _) in found {
            keys.push([above.as_slice(), &[name(&key)?]].concat());
        }
    }
    Some(keys)
}

fn name(node: &str) -> Option<String> {
    let name = node.rsplit(':').next().unwrap_or(node);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (begins && name.chars().all(is_plain) && node.matches(':').count() <= 1).then(|| name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_12_keys_are_nodes_of_their_own() {
        let found = keys("/if:interfaces/interface[name='a/b'][if:enabled=\"false\"]/config");
        let key = |name: &str| ["interfaces", "interface", name].map(str::to_owned).to_vec();
        assert_eq!(found, Some(vec![key("name"), key("enabled")]));
        assert_eq!((keys("/"), keys("/a[1]")), (Some(Vec::new()), None));
    }

    #[test]
    fn nm_12_only_plain_paths_have_nodes() {
        let found = nodes("/openconfig-interfaces:interfaces/interface[name='Te0/0/0']/config");
        assert_eq!(found, Some(vec!["interfaces".into(), "interface".into(), "config".into()]));
        assert_eq!(nodes("/"), Some(Vec::new()));
        for odd in ["//interfaces", "/a/../b", "/a/*", "/a[b='x'", "/a]", "/descendant::b", "/a | /b", "/a/text()", "/a/"] {
            assert_eq!(nodes(odd), None, "{odd}");
        }
    }
}
