//! Resolves `[node]` and `[[parent]]`. Dials nobody.

use std::time::Duration;

use banyan_model::Segment;
use mesh_proto::authority::Authority;
use mesh_proto::message::{HEARTBEAT_LEAST, HEARTBEAT_MOST, MAX_URL_BYTES};
use runtime::reach::is_loopback;

use super::file;
use super::resolved::{Join, Parent};
use crate::file::At;
use crate::problem::Flaw;
use crate::reading::FileReading;
use crate::suggest;

/// Default interval between two signs of life.
const HEARTBEAT: Duration = Duration::from_secs(5);

impl FileReading<'_> {
    /// Resolves the gate's place in a larger tree, if the gate has parents.
    pub(super) fn join(&mut self, node: Option<&At<file::Node>>, parents: &[At<file::Parent>]) -> Option<Join> {
        let Some(named) = node else {
            if let Some(first) = parents.first() {
                let flaw = Flaw::new(first.span(), "a parent needs to know what this gate is called there");
                self.flaws.push(flaw.help("add a section [node] with segment = \"NAME\""));
            }
            return None;
        };
        let node = named.get();
        let join = Join {
            segment: self.node_segment(&node.segment),
            heartbeat: self.heartbeat(node.heartbeat.as_ref()),
            authority: node.authority.as_ref().and_then(|authority| self.authority_name(authority)),
            authority_proof: node.authority_proof.as_ref().map(|proof| self.secret(proof, "node: authority_proof")),
            auth_scope: node.auth_scope.map(Into::into),
            public_url: node.public_url.as_ref().and_then(|url| self.public_url(url)),
            parents: parents.iter().filter_map(|parent| self.parent(parent.get())).collect(),
        };
        (!parents.is_empty()).then_some(join)
    }

    fn node_segment(&mut self, segment: &At<String>) -> Segment {
        Segment::new(segment.get()).unwrap_or_else(|bad| {
            let near = suggest::segment(segment.get());
            self.flaws.push(Flaw::new(segment.span(), bad.to_string()).help(format!("for example segment = \"{near}\"")));
            near
        })
    }

    fn heartbeat(&mut self, heartbeat: Option<&At<String>>) -> Duration {
        let given = self.duration(heartbeat);
        if let (Some(text), Some(given)) = (heartbeat, given)
            && !(HEARTBEAT_LEAST..=HEARTBEAT_MOST).contains(&given)
        {
            let flaw = Flaw::new(text.span(), format!("a heartbeat every {} is not taken by any parent", text.get()));
            self.flaws.push(flaw.help("write \"100ms\" to \"1h\""));
        }
        given.unwrap_or(HEARTBEAT)
    }

    fn authority_name(&mut self, text: &At<String>) -> Option<Authority> {
        let authority = Authority::parse(text.get());
        if authority.is_none() {
            let flaw = Flaw::new(text.span(), format!("`{}` is not an authority", text.get()));
            self.flaws.push(flaw.help("write a DNS name with `dns:` before it, for example \"dns:edge01.example.com\""));
        }
        authority
    }

    fn public_url(&mut self, text: &At<String>) -> Option<url::Url> {
        let url = self.address(text)?;
        if url.as_str().len() > MAX_URL_BYTES {
            let flaw = Flaw::new(text.span(), format!("an address of more than {MAX_URL_BYTES} bytes is not taken by any parent"));
            self.flaws.push(flaw.help("write a shorter one"));
        }
        Some(url)
    }

    fn parent(&mut self, parent: &file::Parent) -> Option<Parent> {
        let token = parent.token.as_ref().map(|token| self.secret(token, "parent: token"));
        let url = self.address(&parent.url)?;
        if !parent.insecure && url.scheme() == "http" && !is_loopback(&url) {
            let flaw = Flaw::new(
                parent.url.span(),
                "a parent on the network is not joined over plain http: whoever listens in could read and change every call",
            );
            self.flaws.push(flaw.help("write https://, or insecure = true where the network is protected otherwise"));
        }
        if let Some(tls) = parent.tls.as_ref().filter(|_| url.scheme() != "https") {
            let flaw = Flaw::new(tls.span(), "`tls` of a parent has no meaning for an http:// address");
            self.flaws.push(flaw.help("write https:// in its `url`, or leave `tls` out"));
        }
        let tls = parent.tls.as_ref().map(|tls| self.client_tls("parent", tls));
        Some(Parent { url, token, tls, insecure: parent.insecure })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::parse;
    use crate::secret::SystemSources;

    fn join(text: &str) -> Result<Option<Join>, String> {
        parse(text, Path::new("banyan.toml"), &SystemSources).map(|config| config.join).map_err(|e| e.to_string())
    }

    #[test]
    fn a_gate_joins_its_parents_in_their_order() {
        let text = "[node]\nsegment = \"edge\"\nheartbeat = \"1s\"\nauthority = \"dns:e.example\"\n\
                    [[parent]]\nurl = \"https://a.example\"\ntoken = \"${env:T}\"\n[[parent]]\nurl = \"http://127.0.0.1:1\"\n";
        let join = join(text).unwrap().unwrap();
        assert_eq!((join.segment.as_str(), join.heartbeat), ("edge", Duration::from_secs(1)));
        assert_eq!(join.parents.iter().map(|p| p.url.as_str()).collect::<Vec<_>>(), ["https://a.example/", "http://127.0.0.1:1/"]);
        assert!(join.parents[0].token.is_some() && join.parents[1].token.is_none());
        assert_eq!(self::join("[node]\nsegment = \"edge\"").unwrap(), None);
    }

    #[test]
    fn ax_42_a_parent_on_the_network_is_not_joined_over_plain_http_unless_somebody_says_so() {
        let text = |more: &str| format!("[node]\nsegment = \"edge\"\n[[parent]]\nurl = \"http://root.example\"\n{more}");
        let refused = join(&text("")).unwrap_err();
        assert!(refused.contains("insecure = true") && refused.contains("https://"), "{refused}");
        assert!(join(&text("insecure = true")).unwrap().is_some());
    }

    #[test]
    fn what_is_wrong_with_a_parent_says_what_to_write() {
        for (text, wanted) in [
            ("[[parent]]\nurl = \"https://a\"", "[node]"),
            ("[node]\nsegment = \"A b\"\n[[parent]]\nurl = \"https://a\"", "segment = \"a-b\""),
            ("[node]\nsegment = \"a\"\nheartbeat = \"5ms\"\n[[parent]]\nurl = \"https://a\"", "100ms"),
            ("[node]\nsegment = \"a\"\nauthority = \"edge\"\n[[parent]]\nurl = \"https://a\"", "dns:edge01"),
        ] {
            let refused = join(text).unwrap_err();
            assert!(refused.contains(wanted), "{refused}");
        }
    }
}
