//! Files of the console, built into the binary: compressed, and named by digest. Does not make them: `console/` does.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, ETAG, IF_NONE_MATCH, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use door::reply;
use door::reply::Payload;

/// Files by name: the beginning of the content's digest, and the content, compressed by gzip.
static FILES: LazyLock<BTreeMap<&'static str, Asset>> = LazyLock::new(|| {
    let gzipped: [(&str, &[u8]); 7] = [
        ("app.css", include_bytes!("../../../../console/dist/app.css.gz")),
        ("app.js", include_bytes!("../../../../console/dist/app.js.gz")),
        ("fonts.txt", include_bytes!("../../../../console/dist/fonts.txt.gz")),
        ("icon.svg", include_bytes!("../../../../console/dist/icon.svg.gz")),
        ("index.html", include_bytes!("../../../../console/dist/index.html.gz")),
        ("inter.woff2", include_bytes!("../../../../console/dist/inter.woff2.gz")),
        ("mono.woff2", include_bytes!("../../../../console/dist/mono.woff2.gz")),
    ];
    let digests: BTreeMap<&str, &str> =
        include_str!("../../../../console/dist/digests.txt").lines().filter_map(|line| line.split_once(' ')).collect();
    gzipped.into_iter().map(|(name, gzip)| (name, Asset { digest: digests.get(name).copied().unwrap_or_default(), gzip })).collect()
});

struct Asset {
    digest: &'static str,
    gzip: &'static [u8],
}

/// Permissions of the page: load from here, ask this gate, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Header fields of every answer of the console.
const GUARDS: [(&str, &str); 6] = [
    ("content-security-policy", POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
];

/// Adds [`GUARDS`] to an answer.
pub(super) fn guard(response: &mut Response<Payload>) {
    let headers = response.headers_mut();
    headers.extend(GUARDS.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Finds a file by name; the empty name is the page.
pub(super) fn answer(name: &str, parts: &Parts) -> Option<Response<Payload>> {
    let name = if name.is_empty() { "index.html" } else { name };
    let file = FILES.get(name)?;
    // Cached for ever only by digest: under its plain name a file changes with the next version.
    let is_pinned = parts.uri.query() == Some(file.digest);
    let tag = format!("\"{}\"", file.digest);
    let is_known = parts.headers.get(IF_NONE_MATCH).is_some_and(|known| holds(known, &tag));
    let mut response = if is_known {
        reply::typed(StatusCode::NOT_MODIFIED, kind(name), Bytes::new())
    } else if takes_gzip(&parts.headers) {
        let body = if parts.method == Method::HEAD { Bytes::new() } else { Bytes::from_static(file.gzip) };
        reply::typed(StatusCode::OK, kind(name), body)
    } else {
        return Some(reply::typed(StatusCode::NOT_ACCEPTABLE, "text/plain", Bytes::from_static(b"this is here compressed by gzip only\n")));
    };
    let headers = response.headers_mut();
    headers.extend(HeaderValue::from_str(&tag).ok().map(|tag| (ETAG, tag)));
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    let cached = if is_pinned { "public, max-age=31536000, immutable" } else { "no-cache" };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cached));
    guard(&mut response);
    Some(response)
}

fn holds(known: &HeaderValue, tag: &str) -> bool {
    known.to_str().unwrap_or_default().split(',').any(|one| one.trim().trim_start_matches("W/") == tag)
}

/// Checks for gzip. A request without `Accept-Encoding` takes any coding (RFC 9110, section 12.5.3).
fn takes_gzip(headers: &HeaderMap) -> bool {
    let Some(wanted) = headers.get(ACCEPT_ENCODING).and_then(|v| v.to_str().ok()) else { return true };
    wanted.split(',').any(|one| {
        let (coding, weight) = one.split_once(';').unwrap_or((one, ""));
        let refused = matches!(weight.trim().strip_prefix("q="), Some(q) if q.trim().parse() == Ok(0.0));
        matches!(coding.trim(), "gzip" | "x-gzip" | "*") && !refused
    })
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("css") => "text/css; charset=utf-8",
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("txt") => "text/plain; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn get(name: &str, headers: &[(&str, &str)]) -> Option<Response<Payload>> {
        let uri = format!("/-/console/{name}");
        let request = headers.iter().fold(Request::get(uri), |request, (name, value)| request.header(*name, *value));
        answer(name.split('?').next().unwrap(), &request.body(()).unwrap().into_parts().0)
    }

    fn field(response: &Response<Payload>, name: &str) -> String {
        response.headers().get(name).map(|v| v.to_str().unwrap().to_owned()).unwrap_or_default()
    }

    #[test]
    fn every_file_is_there_and_says_its_digest() {
        for (name, file) in FILES.iter() {
            assert_eq!(file.digest.len(), 16, "{name}");
            assert_eq!(file.gzip.get(..2), Some(&[0x1f, 0x8b][..]), "{name} is compressed");
        }
        assert!(get("nothing", &[]).is_none() && get("../Cargo.toml", &[]).is_none());
    }

    #[test]
    fn a_file_is_cached_for_ever_only_by_digest() {
        let digest = FILES["app.js"].digest;
        let cached = |name: &str| field(&get(name, &[]).unwrap(), "cache-control");
        assert!(cached(&format!("app.js?{digest}")).contains("immutable"));
        assert_eq!([cached("app.js"), cached("app.js?0123456789abcdef"), cached("")], ["no-cache"; 3]);
        let again = get("app.js", &[("if-none-match", &format!("W/\"x\", \"{digest}\""))]).unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    }

    #[test]
    fn gzip_goes_to_those_who_take_it() {
        for (accepted, status) in [("gzip, br", 200), ("br;q=1, gzip;q=0.5", 200), ("*", 200), ("identity", 406), ("gzip;q=0", 406)] {
            assert_eq!(get("", &[("accept-encoding", accepted)]).unwrap().status(), status, "{accepted}");
        }
        assert_eq!(field(&get("", &[]).unwrap(), "content-encoding"), "gzip");
    }

    #[test]
    fn a_page_loads_and_asks_only_this_gate() {
        let page = get("", &[]).unwrap();
        let policy = field(&page, "content-security-policy");
        assert!(policy.starts_with("default-src 'none'; ") && policy.contains("frame-ancestors 'none'"), "{policy}");
        let mut sources = policy.split("; ").flat_map(|directive| directive.split(' ').skip(1));
        assert!(sources.all(|source| ["'none'", "'self'", "'script'", "data:"].contains(&source)), "{policy}");
        assert!(!policy.contains("script-src 'self' data:") && !policy.contains("connect-src 'self' data:"), "{policy}");
        assert_eq!(field(&page, "x-content-type-options"), "nosniff");
    }
}
