//! Requests from a page of this very gate. Stricter than the door for clients: another port of the same host is another site, although
//! browsers send both the same cookies. Knows no sessions.

use config::resolved::Config;
use http::header::{HOST, ORIGIN};
use http::request::Parts;

use crate::entry;

/// Checks for a page of this gate. The error says what is wrong and what to do.
pub fn check(config: &Config, parts: &Parts) -> Result<(), String> {
    let text = |name| parts.headers.get(name).map(|v| v.to_str().unwrap_or("?"));
    let host = text(HOST).or_else(|| parts.uri.authority().map(|a| a.as_str())).unwrap_or_default();
    if !entry::host_allowed(config, host) {
        return Err(format!("Host {host} is not allowed: use a loopback name, or add it to `allowed_hosts`"));
    }
    let scheme = if config.trust.tls.is_some() { "https" } else { "http" };
    if let Some(origin) = text(ORIGIN)
        && origin != format!("{scheme}://{host}")
    {
        return Err(format!("Origin {origin} is another site than {scheme}://{host}: only the console's own pages may ask here"));
    }
    match parts.headers.get("sec-fetch-site").map(|v| v.as_bytes()) {
        None | Some(b"same-origin") => Ok(()),
        Some(_) => Err("only the console's own pages may ask here".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use config::resolved::Config;

    fn asked(headers: &[(&str, &str)]) -> Result<(), String> {
        let request = headers.iter().fold(Request::get("/-/status"), |request, (name, value)| request.header(*name, *value));
        check(&Config::default(), &request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn only_pages_of_this_gate_may_ask() {
        let host = ("host", "localhost:7411");
        assert_eq!(asked(&[host]), Ok(()));
        assert_eq!(asked(&[host, ("origin", "http://localhost:7411"), ("sec-fetch-site", "same-origin")]), Ok(()));
        for (name, value) in [
            ("origin", "http://localhost:7412"),
            ("origin", "http://127.0.0.1:7411"),
            ("origin", "https://localhost:7411"),
            ("origin", "null"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "none"),
        ] {
            assert!(asked(&[host, (name, value)]).is_err(), "{name}: {value}");
        }
        for host in ["evil.example", "localhost.evil.example:7411", ""] {
            assert!(asked(&[("host", host)]).is_err(), "{host}");
        }
    }
}
