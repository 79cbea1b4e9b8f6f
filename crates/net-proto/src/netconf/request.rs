//! Requests as XML. Content of `<config>` and filters comes in as XML already; everything else is escaped here. Sends nothing.

use quick_xml::escape::escape;

use super::{BASE_1_0, BASE_1_1, NAMESPACE, NOTIFICATIONS};

/// Datastore of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datastore {
    Running,
    Candidate,
    Startup,
}

impl Datastore {
    const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Candidate => "candidate",
            Self::Startup => "startup",
        }
    }
}

/// Test of an edit by the device (`test-option`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditTest {
    /// The device can't test.
    Unsupported,
    /// Another edit follows, and only all of them make sense.
    Later,
    /// The whole candidate is tested with this edit.
    Now,
}

/// Body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetconfRequest<'a> {
    GetConfig {
        source: Datastore,
        filter: Option<&'a str>,
    },
    Get {
        filter: Option<&'a str>,
    },
    Lock(Datastore),
    Unlock(Datastore),
    /// Default merge and rollback-on-error, tested in the same request: netconfd forgets an edit that a lone `<validate>` has seen.
    Config {
        target: Datastore,
        config: &'a str,
        test: EditTest,
    },
    Validate(Datastore),
    Commit,
    /// Always with a persist-id, so that a lost session rolls nothing back too early and any session can confirm.
    ConfirmedCommit {
        seconds: u32,
        persist: &'a str,
    },
    Confirm {
        persist_id: &'a str,
    },
    Cancel {
        persist_id: &'a str,
    },
    Discard,
    GetSchema {
        identifier: &'a str,
        version: Option<&'a str>,
    },
    /// Events from now on, or from a moment that has passed (RFC 5277, section 2.1.1).
    Subscribe {
        stream: &'a str,
        start: Option<&'a str>,
    },
    Close,
}

/// Hello of this side.
pub fn hello() -> String {
    format!(
        "<hello xmlns=\"{NAMESPACE}\"><capabilities><capability>{BASE_1_0}</capability><capability>{BASE_1_1}</capability></capabilities></hello>"
    )
}

/// Request with a number.
pub fn rpc(id: u64, edit: &NetconfRequest<'_>) -> String {
    format!("<rpc xmlns=\"{NAMESPACE}\" message-id=\"{id}\">{}</rpc>", body(edit))
}

fn body(edit: &NetconfRequest<'_>) -> String {
    let filtered = |filter: &Option<&str>| filter.map_or_else(String::new, |inner| format!("<filter type=\"subtree\">{inner}</filter>"));
    match edit {
        NetconfRequest::GetConfig { source, filter } => {
            format!("<get-config><source><{0}/></source>{1}</get-config>", source.name(), filtered(filter))
        }
        NetconfRequest::Get { filter } => format!("<get>{}</get>", filtered(filter)),
        NetconfRequest::Lock(target) => format!("<lock><target><{}/></target></lock>", target.name()),
        NetconfRequest::Unlock(target) => format!("<unlock><target><{}/></target></unlock>", target.name()),
        NetconfRequest::Config { target, config, test } => {
            let test = match test {
                EditTest::Unsupported => "",
                EditTest::Later => "<test-option>set</test-option>",
                EditTest::Now => "<test-option>test-then-set</test-option>",
            };
            format!(
                "<edit-config><target><{}/></target><default-operation>merge</default-operation>{test}\
                 <error-option>rollback-on-error</error-option><config>{config}</config></edit-config>",
                target.name()
            )
        }
        NetconfRequest::Validate(source) => format!("<validate><source><{}/></source></validate>", source.name()),
        NetconfRequest::Commit => "<commit/>".to_owned(),
        NetconfRequest::ConfirmedCommit { seconds, persist } => {
            let persist = escape(*persist);
            format!("<commit><confirmed/><confirm-timeout>{seconds}</confirm-timeout><persist>{persist}</persist></commit>")
        }
        NetconfRequest::Confirm { persist_id } => format!("<commit><persist-id>{}</persist-id></commit>", escape(*persist_id)),
        NetconfRequest::Cancel { persist_id } => format!("<cancel-commit><persist-id>{}</persist-id></cancel-commit>", escape(*persist_id)),
        NetconfRequest::Discard => "<discard-changes/>".to_owned(),
        NetconfRequest::GetSchema { identifier, version } => {
            let version = version.map_or_else(String::new, |version| format!("<version>{}</version>", escape(version)));
            format!(
                "<get-schema xmlns=\"urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring\"><identifier>{}</identifier>{version}</get-schema>",
                escape(*identifier)
            )
        }
        NetconfRequest::Subscribe { stream, start } => {
            let start = start.map_or_else(String::new, |start| format!("<startTime>{}</startTime>", escape(start)));
            format!("<create-subscription xmlns=\"{NOTIFICATIONS}\"><stream>{}</stream>{start}</create-subscription>", escape(*stream))
        }
        NetconfRequest::Close => "<close-session/>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_09_a_confirmed_commit_persists_and_is_escaped() {
        let asked = rpc(7, &NetconfRequest::ConfirmedCommit { seconds: 120, persist: "a<b&" });
        assert!(asked.contains("message-id=\"7\"") && asked.contains("<confirm-timeout>120</confirm-timeout>"), "{asked}");
        assert!(asked.contains("<persist>a&lt;b&amp;</persist>"), "{asked}");
    }

    #[test]
    fn nm_09_an_edit_is_tested_and_set_in_one_request() {
        let asked = rpc(1, &NetconfRequest::Config { target: Datastore::Candidate, config: "<x/>", test: EditTest::Now });
        assert!(
            asked.contains("test-then-set") && asked.contains("rollback-on-error") && asked.contains("<config><x/></config>"),
            "{asked}"
        );
    }
}
