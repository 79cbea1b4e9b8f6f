//! Admission of registrants, and of the URLs they name. A URL in a registration makes the gate dial, so only hosts listed by the operator
//! are permitted. The machine checks all other conditions.

use config::resolved::Registry;
use mcp_proto::glob::Glob;
use mesh_proto::authority::Identity;
use mesh_proto::message::Register;
use mesh_proto::parent::Session;
use mesh_proto::refusal::Refusal;
use runtime::reach::is_loopback;
use url::Url;

use crate::registry::input::Way;

/// Gives the address of an applicant; `None`: over the applicant's link.
///
/// # Errors
/// The refusal of the registration as a whole.
pub fn admit(config: Option<&Registry>, identity: &Identity, way: Way, register: &Register) -> Result<Option<Url>, Refusal> {
    let Some(config) = config else {
        return Err(not_admitted("registrations are not taken here; add a section [registry] to banyan.toml"));
    };
    let name = &*identity.principal;
    if !is_named(config, name).unwrap_or(!identity.proven.is_empty()) {
        let unnamed = if config.principals.is_none() { ": it proves no authority, and nobody is named" } else { "" };
        return Err(not_admitted(&format!("`{name}` may not register here{unnamed}; add it to `principals` in the section [registry]")));
    }
    if matches!(way, Way::Http { is_private: false, .. }) && register.is_aggregator() && !config.insecure {
        let why = "gates do not talk to each other where others can listen in; connect by https, or say `insecure = true` in the section [registry]";
        return Err(not_admitted(why));
    }
    match (&register.url, way) {
        (Some(url), Way::Http { is_here, .. } | Way::Link { is_here, .. }) => dialled(config, is_here, url).map(Some),
        (None, Way::Link { .. }) => Ok(None),
        (None, Way::Http { .. }) => Err(bad_url("is missing; send the URL of your MCP endpoint, or register over a link")),
    }
}

/// Tells whether a registered server would still be admitted.
pub fn stays(config: Option<&Registry>, session: &Session) -> bool {
    let Some(config) = config else { return false };
    // Whoever has shown a certificate is known by a name in it.
    let is_proven = || session.proven || session.principal.starts_with("dns:");
    let may = is_named(config, &session.principal).unwrap_or_else(is_proven);
    may && session.url.as_ref().is_none_or(|url| dialled(config, true, url).is_ok())
}

/// Checks whether the configuration names a principal; `None`: no names at all.
fn is_named(config: &Registry, name: &str) -> Option<bool> {
    Some(config.principals.as_ref()?.iter().any(|glob| Glob::new(glob).matches(name)))
}

/// Checks a URL. `is_here`: the registrant is on this machine, and may name a server on this machine. From elsewhere such a URL would reach
/// servers meant for this machine only.
fn dialled(config: &Registry, is_here: bool, text: &str) -> Result<Url, Refusal> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or_else(|| bad_url("must be an http:// or https:// URL"))?;
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(bad_url("must hold neither user, password nor fragment"));
    }
    let is_loopback = is_loopback(&url);
    if (is_loopback && is_here) || config.hosts.allow(&url) {
        return Ok(url);
    }
    if is_loopback {
        let why = "names a server on the gate's own machine, and you are not there; name the address at which the gate reaches you, or register over a link";
        return Err(bad_url(why));
    }
    let host: String = url.host_str().unwrap_or_default().chars().take(80).collect();
    Err(bad_url(&format!(
        "names the host `{host}`, which is not dialled from here; add it to `hosts` in the section [registry], or register over a link"
    )))
}

fn bad_url(why: &str) -> Refusal {
    Refusal::ParamsInvalid { member: "url".into(), why: why.into() }
}

fn not_admitted(why: &str) -> Refusal {
    Refusal::NotAdmitted { why: why.into() }
}

#[cfg(test)]
mod tests {
    use banyan_model::Segment;
    use mesh_proto::authority::Authority;
    use mesh_proto::id::{LinkId, NodeId};

    use super::*;
    use config::resolved::Hosts;

    const HTTP: Way = Way::Http { is_private: true, is_here: true };

    fn open() -> Registry {
        Registry { principals: Some(vec!["*".into()]), ..Registry::default() }
    }

    const LINK: Way = Way::Link { id: LinkId(1), is_here: false };

    fn asked(config: &Registry, way: Way, url: Option<&str>) -> Result<Option<Url>, Refusal> {
        let register = Register { url: url.map(Into::into), ..Register::plain(NodeId::new(1), Segment::nearest("a")) };
        admit(Some(config), &Identity::bare("edge-1"), way, &register)
    }

    #[test]
    fn ax_27_a_refused_applicant_hears_the_remedy() {
        let some = Registry { principals: Some(vec!["cloud-*".into()]), ..Registry::default() };
        let refused = asked(&some, LINK, None).unwrap_err();
        assert!(refused.to_string().contains("add it to `principals`"), "{refused}");
        let register = Register::plain(NodeId::new(1), Segment::nearest("a"));
        let nobody = admit(None, &Identity::bare("x"), HTTP, &register).unwrap_err();
        assert_eq!((nobody.error().code, nobody.error().message), (-31008, "not_admitted"));
    }

    #[test]
    fn m16_without_named_principals_registering_needs_a_proof() {
        let config = Registry::default();
        let register = Register::plain(NodeId::new(1), Segment::nearest("a"));
        let refused = admit(Some(&config), &Identity::bare("local"), LINK, &register).unwrap_err();
        assert!(refused.to_string().contains("add it to `principals`"), "{refused}");
        let mut proven = Identity::bare("dns:a.example");
        proven.proven.insert(Authority::parse("dns:a.example").unwrap());
        assert_eq!(admit(Some(&config), &proven, LINK, &register), Ok(None));
    }

    #[test]
    fn ax_42_gates_do_not_register_over_unprotected_connections() {
        let asked = |insecure, register: &Register| {
            let config = Registry { insecure, ..open() };
            admit(Some(&config), &Identity::bare("edge-1"), Way::Http { is_private: false, is_here: true }, register).is_ok()
        };
        let plain = Register { url: Some("http://127.0.0.1/".into()), ..Register::plain(NodeId::new(1), Segment::nearest("a")) };
        let gate = Register { subtree: Some([NodeId::new(1)].into()), ..plain.clone() };
        assert_eq!((asked(false, &plain), asked(false, &gate), asked(true, &gate)), (true, false, true));
    }

    #[test]
    fn a_gate_dials_only_where_its_operator_lets_it() {
        let config = Registry { hosts: Hosts::of(["*.plant.example", "10.1.0.0/16"]), ..open() };
        for good in
            ["http://127.0.0.1:80/mcp", "http://[::1]:9/", "https://a.plant.example/mcp", "https://10.1.2.3/", "http://localhost:1/x"]
        {
            assert!(asked(&config, HTTP, Some(good)).is_ok(), "{good}");
        }
        for bad in [
            "http://169.254.169.254/",
            "https://plant.example.evil/",
            "file:///etc/passwd",
            "http://u:p@127.0.0.1/",
            "x",
            "http://10.2.0.1/",
            "http://10.1.attacker.example/",
        ] {
            assert!(asked(&config, HTTP, Some(bad)).is_err(), "{bad}");
        }
        assert!(asked(&config, HTTP, None).is_err());
        let elsewhere = Way::Http { is_private: true, is_here: false };
        for (way, url) in [(elsewhere, "http://127.0.0.1:80/mcp"), (elsewhere, "http://localhost:1/x"), (LINK, "http://[::1]:9/")] {
            assert!(asked(&config, way, Some(url)).is_err(), "a server elsewhere names one of this machine: {url}");
        }
        assert!(asked(&config, elsewhere, Some("https://a.plant.example/mcp")).is_ok());
        let own = Registry { hosts: Hosts::of(["localhost"]), ..open() };
        assert!(asked(&own, elsewhere, Some("http://localhost:1/x")).is_ok(), "where whoever runs the gate says so");
        assert_eq!(asked(&config, LINK, None), Ok(None));
    }
}
