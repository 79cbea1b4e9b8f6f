//! Resolves `[profile.NAME]` and `names`. Looks at no client.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::file;
use super::resolved::{NameStyle, Profile, Search};
use crate::file::At;
use crate::problem::Flaw;
use crate::reading::FileReading;

impl FileReading<'_> {
    pub(super) fn profiles(&mut self, profiles: &BTreeMap<At<String>, file::Profile>) -> Vec<Arc<Profile>> {
        let mut in_order: Vec<_> = profiles.iter().collect();
        in_order.sort_by_key(|(name, _)| name.span().start);
        in_order.into_iter().map(|(name, profile)| Arc::new(self.profile(name.get(), profile))).collect()
    }

    fn profile(&mut self, name: &str, profile: &file::Profile) -> Profile {
        for shown in profile.rename.values() {
            let legal = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            let text = shown.get();
            if text.is_empty() || text.len() > 128 || !text.chars().all(legal) {
                let flaw = Flaw::new(shown.span(), format!("`{text}` can't be the name of a tool"));
                self.flaws.push(flaw.help("use 1 to 128 letters, digits, `_`, `-` and `.`"));
            }
        }
        Profile {
            name: name.into(),
            clients: self.globs(&profile.clients),
            include: self.globs(&profile.include),
            exclude: self.globs(&profile.exclude),
            rename: self.renames(&profile.rename),
            names: profile.names.map(name_style),
            search: match profile.search {
                Some(file::Search::Above(tools)) => Search::Above(tools),
                Some(file::Search::Always) => Search::Always,
                Some(file::Search::Never) => Search::Never,
                None => Search::default(),
            },
            annotations: profile.annotations.unwrap_or(true),
        }
    }
}

pub(super) fn name_style(names: file::Names) -> NameStyle {
    match names {
        file::Names::Dotted => NameStyle::Dotted,
        file::Names::Safe => NameStyle::Safe,
    }
}
