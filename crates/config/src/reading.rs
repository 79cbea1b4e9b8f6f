//! A pass over `banyan.toml`: reads the texts of all sections, and collects every flaw. A default replaces a wrong value, and reading goes
//! on. Does not fetch secrets.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use banyan_model::Segment;
use toml::de::DeTable;

use crate::file::At;
use crate::problem::{ConfigError, Flaw};
use crate::resolved::Config;
use crate::secret::{SecretRef, Sources};
use crate::{suggest, units};

/// Longest duration: more would overflow in sums with the time.
const MAX_DURATION: Duration = Duration::from_secs(365 * 86_400);

/// Readers of texts for sections, and the flaws found so far.
pub struct FileReading<'a> {
    /// The directory of the file; absolute, since the file may be read again by another name.
    dir: PathBuf,
    pub(crate) sources: &'a dyn Sources,
    table: &'a DeTable<'a>,
    /// Keys of sections that each mount a server.
    mounting: Vec<&'static str>,
    pub(crate) flaws: Vec<Flaw>,
    /// The error of another file, named by the configuration.
    pub(crate) elsewhere: Option<ConfigError>,
}

impl<'a> FileReading<'a> {
    pub(crate) fn new(dir: PathBuf, table: &'a DeTable<'a>, sources: &'a dyn Sources, mounting: Vec<&'static str>) -> Self {
        Self { dir, sources, table, mounting, flaws: Vec::new(), elsewhere: None }
    }

    /// Refuses the file for `flaw`; the other sections are still read.
    pub fn refuse(&mut self, flaw: Flaw) {
        self.flaws.push(flaw);
    }

    /// Checks whether the file has `key` at the top.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Lists the names of the sections `[key.NAME]`, in any order.
    pub fn names(&self, key: &str) -> Vec<&'a str> {
        self.named(key).map(|(name, _)| name).collect()
    }

    /// Finds the place of the section `[key.NAME]`.
    pub(crate) fn place(&self, key: &str, name: &str) -> Option<Range<usize>> {
        self.named(key).find(|(known, _)| *known == name).map(|(_, span)| span)
    }

    fn named(&self, key: &str) -> impl Iterator<Item = (&'a str, Range<usize>)> + use<'a> {
        let table = self.table.get(key).and_then(|value| value.get_ref().as_table());
        table.into_iter().flatten().map(|(name, _)| (name.get_ref().as_ref(), name.span()))
    }

    /// Lists the keys of sections that each mount a server, but for `mount`.
    pub(crate) fn families(&self) -> Vec<&'static str> {
        self.mounting.iter().copied().filter(|key| *key != "mount").collect()
    }

    /// Refuses a `name` without a section `[key.NAME]`; for `mount` the sections of all families count. Help is the nearest known name, or else `advice`.
    pub fn known(&mut self, key: &str, name: &At<String>, advice: &str) -> bool {
        self.known_beside(&[], key, name, advice)
    }

    /// The same for a key that has names without a section as well, which are `built_in`.
    pub fn known_beside(&mut self, built_in: &[&str], key: &str, name: &At<String>, advice: &str) -> bool {
        let keys = if key == "mount" { self.mounting.clone() } else { vec![key] };
        let known: Vec<&str> = keys.into_iter().flat_map(|key| self.names(key)).chain(built_in.iter().copied()).collect();
        let text = name.get().as_str();
        if known.contains(&text) {
            return true;
        }
        let flaw = Flaw::new(name.span(), format!("there is no {key} `{text}`"));
        self.flaws.push(match suggest::nearest(text, known) {
            Some(near) => flaw.help(format!("did you mean `{near}`?")),
            None => flaw.help(advice),
        });
        false
    }
}

impl FileReading<'_> {
    /// Reads the `name` of a section `[key.NAME]` as a segment of the tree.
    pub(crate) fn segment(&mut self, name: &At<String>, key: &str) -> Segment {
        Segment::new(name.get()).unwrap_or_else(|bad| {
            let near = suggest::segment(name.get());
            self.flaws.push(Flaw::new(name.span(), bad.to_string()).help(format!("for example [{key}.{near}]")));
            near
        })
    }

    /// Reads the `name` of a section `[key.NAME]` that mounts a server; `None`: another section has mounted one under that name.
    pub fn free_segment(&mut self, name: &At<String>, key: &str, config: &Config) -> Option<Segment> {
        let segment = self.segment(name, key);
        if !config.mounts.contains_key(&segment) {
            return Some(segment);
        }
        let flaw = Flaw::new(name.span(), format!("another section has mounted a server as `{segment}`"));
        self.flaws.push(flaw.help("give one of the two another name"));
        None
    }

    /// Reads names with `*` for any text.
    pub fn globs(&mut self, globs: &[At<String>]) -> Vec<String> {
        for glob in globs.iter().filter(|glob| glob.get().trim().is_empty()) {
            let flaw = Flaw::new(glob.span(), "an empty text matches nothing");
            self.flaws.push(flaw.help("write a name, or `*` for all"));
        }
        globs.iter().map(|glob| glob.get().clone()).collect()
    }

    /// Reads new names of tools, and refuses the same name for two tools.
    pub(crate) fn renames(&mut self, renames: &BTreeMap<At<String>, At<String>>) -> BTreeMap<String, String> {
        let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
        for (tool, shown) in renames {
            if let Some(other) = taken.insert(shown.get(), tool.get()) {
                let message = format!("`{other}` and `{}` would both be named `{}`", tool.get(), shown.get());
                self.flaws.push(Flaw::new(shown.span(), message).help("give each tool a name of its own"));
            }
        }
        renames.iter().map(|(tool, shown)| (tool.get().clone(), shown.get().clone())).collect()
    }

    /// Reads a size in bytes, such as `16MiB`.
    pub fn size(&mut self, text: Option<&At<String>>) -> Option<usize> {
        let text = text?;
        let size = units::size(text.get()).filter(|size| *size > 0);
        if size.is_none() {
            let flaw = Flaw::new(text.span(), format!("\"{}\" is not a size", text.get()));
            self.flaws.push(flaw.help("write a whole number with B, kB, MB, GB, KiB, MiB or GiB, for example \"16MiB\""));
        }
        size
    }

    /// Reads settings for single mounts by name. Absent mounts are taken: a client's file may bring them later.
    pub(crate) fn by_mount<T: Copy, M>(
        &mut self,
        written: &BTreeMap<At<String>, T>,
        example: &str,
        lowered: impl Fn(T) -> M,
    ) -> BTreeMap<Segment, M> {
        let mut mounts = BTreeMap::new();
        for (name, own) in written {
            match Segment::new(name.get()) {
                Ok(segment) => drop(mounts.insert(segment, lowered(*own))),
                Err(bad) => {
                    let near = suggest::segment(name.get());
                    self.flaws.push(Flaw::new(name.span(), bad.to_string()).help(format!("for example {near} = \"{example}\"")));
                }
            }
        }
        mounts
    }

    /// Reads a length of time from 1 ms to a year, such as `1h30m`.
    pub fn duration(&mut self, text: Option<&At<String>>) -> Option<Duration> {
        let text = text?;
        let duration = units::duration(text.get()).filter(|duration| (Duration::from_millis(1)..=MAX_DURATION).contains(duration));
        if duration.is_none() {
            let flaw = Flaw::new(text.span(), format!("\"{}\" is not a duration of 1ms to 365d", text.get()));
            self.flaws.push(flaw.help("write whole numbers with ms, s, m, h or d, for example \"30s\" or \"1h30m\""));
        }
        duration
    }

    /// Reads a duration that may be none: `0s`.
    pub fn duration_or_none(&mut self, text: Option<&At<String>>) -> Option<Duration> {
        let is_none = text.is_some_and(|text| text.get().trim() == "0s");
        if is_none { Some(Duration::ZERO) } else { self.duration(text) }
    }

    /// Reads an `http` or `https` address, and replaces environment references in the text.
    pub fn address(&mut self, text: &At<String>) -> Option<url::Url> {
        let flaw = |message: String| Flaw::new(text.span(), message).secret();
        let address = match crate::address(text.get(), self.sources) {
            Ok(address) => address,
            Err(message) => {
                self.flaws.push(flaw(message).help("secrets belong into `headers`; addresses are shown in lists and logs"));
                return None;
            }
        };
        match url::Url::parse(&address) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Some(url),
            Ok(_) | Err(_) => {
                let flaw = flaw("this is not an http:// or https:// address".into());
                self.flaws.push(flaw.help("for example \"https://mcp.example.com/mcp\""));
                None
            }
        }
    }

    /// Reads a reference to a secret, and remembers `place` as its user; fetches nothing.
    pub fn secret(&mut self, text: &At<String>, place: &str) -> SecretRef {
        SecretRef::parse(text.get()).map(|reference| reference.used_by(place)).unwrap_or_else(|error| {
            self.flaws.push(Flaw::new(text.span(), error.to_string()).secret());
            SecretRef::plain("")
        })
    }

    /// Makes a path absolute: a relative path starts below the home directory (`~/`) or beside the file.
    pub fn path(&mut self, text: &At<String>) -> PathBuf {
        let written = text.get();
        match written.strip_prefix("~/").or_else(|| (written == "~").then_some("")) {
            Some(rest) => match self.sources.env("HOME").map_or_else(std::env::home_dir, |home| Some(home.into())) {
                Some(home) => home.join(rest),
                None => {
                    let flaw = Flaw::new(text.span(), "no home directory is known for `~`");
                    self.flaws.push(flaw.help("write the whole path"));
                    PathBuf::from(written)
                }
            },
            None => self.dir.join(written),
        }
    }
}
