//! Tools of all servers, found by name or resemblance. Made once for many definitions: the cost of a look-up does not grow
//! with the number of tools. No concern is stated here.

use std::collections::{BTreeSet, HashMap};

/// Shorter names are words of every language.
const SHORTEST: usize = 5;
/// Bytes of the longest name looked for in texts. MCP asks for no longer names.
const LONGEST: usize = 128;
/// Greatest number of tools given for one name.
const MOST: usize = 20;

/// A tool of some server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Other<'a> {
    pub mount: &'a str,
    /// The tool, as its server names it.
    pub tool: &'a str,
}

/// The tools of all servers.
#[derive(Debug, Default)]
pub struct Others<'a> {
    by_skeleton: HashMap<String, Bearers<'a>>,
    by_name: HashMap<String, Bearers<'a>>,
    /// Length of the longest name by first piece.
    by_first: HashMap<String, usize>,
}

/// Tools of one name: all, or at least [`MOST`] outside any single mount.
#[derive(Debug, Default)]
struct Bearers<'a>(Vec<Other<'a>>);

impl<'a> Bearers<'a> {
    fn add(&mut self, other: Other<'a>) {
        let of_mount = self.0.iter().filter(|one| one.mount == other.mount).count();
        if self.0.len() < 2 * MOST && of_mount < MOST && !self.0.contains(&other) {
            self.0.push(other);
        }
    }

    fn besides(&self, mount: &str) -> impl Iterator<Item = Other<'a>> {
        self.0.iter().filter(move |one| one.mount != mount).take(MOST).copied()
    }
}

impl<'a> FromIterator<Other<'a>> for Others<'a> {
    fn from_iter<I: IntoIterator<Item = Other<'a>>>(tools: I) -> Self {
        let mut all = Self::default();
        for other in tools {
            all.by_skeleton.entry(skeleton(other.tool)).or_default().add(other);
            let name = other.tool.to_lowercase();
            if other.tool.len() < SHORTEST || name.len() > LONGEST {
                continue;
            }
            let first = bounds(&name).get(1).map_or(name.as_str(), |bound| &name[..bound.at]);
            let longest = all.by_first.entry(first.to_owned()).or_default();
            *longest = name.len().max(*longest);
            all.by_name.entry(name).or_default().add(other);
        }
        all
    }
}

impl<'a> Others<'a> {
    /// Lists tools of other mounts with names equal or similar to `tool`.
    pub(super) fn alike(&self, tool: &str, mount: &str) -> impl Iterator<Item = Other<'a>> {
        self.by_skeleton.get(&skeleton(tool)).into_iter().flat_map(move |bearers| bearers.besides(mount))
    }

    /// Tools of other mounts whose names stand by themselves in texts of lower case.
    pub(super) fn named(&self, texts: &[String], mount: &str) -> impl Iterator<Item = Other<'a>> {
        let words: BTreeSet<&str> = texts.iter().flat_map(|text| self.words(text)).collect();
        words.into_iter().filter_map(|word| self.by_name.get(word)).flat_map(move |bearers| bearers.besides(mount))
    }

    /// Lists words of a text that are names of tools.
    fn words<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let (bounds, mut found) = (bounds(text), Vec::new());
        for (i, start) in bounds.iter().enumerate().filter(|(_, start)| !start.is_behind_part) {
            let behind = &bounds[i + 1..];
            let Some(longest) = behind.first().and_then(|next| self.by_first.get(&text[start.at..next.at])) else { continue };
            let ends = behind.iter().take_while(|end| end.at - start.at <= *longest).filter(|end| !end.is_before_part);
            found.extend(ends.map(|end| &text[start.at..end.at]).filter(|word| self.by_name.contains_key(*word)));
        }
        found
    }
}

/// A place where a word may begin or end.
struct Bound {
    at: usize,
    is_behind_part: bool,
    is_before_part: bool,
}

/// Lists the places of a text not between two characters of a word, in order, beginning and end included.
fn bounds(text: &str) -> Vec<Bound> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut is_behind_part = false;
    let mut all = Vec::new();
    for (at, c) in text.char_indices() {
        let is_before_part = is_part(c);
        if !is_behind_part || !is_before_part {
            all.push(Bound { at, is_behind_part, is_before_part });
        }
        is_behind_part = is_before_part;
    }
    all.push(Bound { at: text.len(), is_behind_part, is_before_part: false });
    all
}

/// Reduces a name so that names of similar look become equal.
pub(super) fn skeleton(name: &str) -> String {
    let alike = |c: char| match c {
        '0' | 'о' | 'ο' => 'o',
        '1' | 'і' | 'ı' | '|' => 'l',
        'i' => 'l',
        'а' | 'α' => 'a',
        'е' | 'ε' => 'e',
        'р' | 'ρ' => 'p',
        'с' => 'c',
        'у' => 'y',
        'х' => 'x',
        other => other,
    };
    name.chars().filter(|c| c.is_alphanumeric() || *c == '|').flat_map(char::to_lowercase).map(alike).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'a>(others: &Others<'a>, text: &str, mount: &str) -> Vec<&'a str> {
        others.named(&[text.to_owned()], mount).map(|other| other.tool).collect()
    }

    #[test]
    fn names_are_found_where_they_stand_by_themselves() {
        let tools = ["send_email", "Get-User", "get-user-by-id", ".hidden", "größe", "a b c", "tiny"];
        let others: Others<'_> = tools.iter().map(|tool| Other { mount: "m", tool }).collect();
        for (text, wanted) in [
            ("call send_email.", vec!["send_email"]),
            ("resend_email send_emails", vec![]),
            ("get-user", vec!["Get-User"]),
            ("a get-user-by-id now", vec!["Get-User", "get-user-by-id"]),
            ("x.hidden", vec![]),
            ("x .hidden", vec![".hidden"]),
            ("(größe)", vec!["größe"]),
            ("a b c", vec!["a b c"]),
            ("a b cd", vec![]),
            ("tiny", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(named(&others, text, "n"), wanted, "{text}");
            assert!(named(&others, text, "m").is_empty());
        }
    }

    #[test]
    fn h5_of_one_name_so_many_tools_are_given_whatever_mount_asks() {
        let mounts: Vec<String> = (0..1000).map(|n| format!("m{n}")).collect();
        let many = std::iter::repeat_n("m0", 5000).chain(mounts.iter().map(String::as_str));
        let names: Vec<String> = (0..5000).map(|n| format!("search{}", "_".repeat(n % 50))).collect();
        let others: Others<'_> =
            many.zip(names.iter().chain(std::iter::repeat(&names[0]))).map(|(mount, tool)| Other { mount, tool }).collect();
        for mount in ["m0", "m1", "m999", "x"] {
            assert_eq!(others.alike("search", mount).count(), MOST, "{mount}");
            assert_eq!(named(&others, &"search ".repeat(100), mount).len(), MOST, "{mount}");
        }
    }
}
