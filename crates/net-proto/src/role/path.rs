//! YANG paths as names of nodes, for rules. Does not know models: modules and keys are left out.

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
    fn nm_12_only_plain_paths_have_nodes() {
        let found = nodes("/openconfig-interfaces:interfaces/interface[name='Te0/0/0']/config");
        assert_eq!(found, Some(vec!["interfaces".into(), "interface".into(), "config".into()]));
        assert_eq!(nodes("/"), Some(Vec::new()));
        for odd in ["//interfaces", "/a/../b", "/a/*", "/a[b='x'", "/a]", "/descendant::b", "/a | /b", "/a/text()", "/a/"] {
            assert_eq!(nodes(odd), None, "{odd}");
        }
    }
}
