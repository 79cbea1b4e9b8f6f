//! Documents of other agents over HTTP, kept as HTTP allows (RFC 9111). Judges no document.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use agent_proto::capability::document::LONGEST_DOCUMENT;
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, EXPIRES};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_cache_semantics::{AfterResponse, BeforeRequest, CacheOptions, CachePolicy};
use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::{Client, redirect};
use runtime::reach::{Reach, is_loopback};
use runtime::tls::Connector;
use rustls::ClientConfig;
use rustls::version::TLS13;
use url::{Host, Url};

use crate::lookup::look_up;

/// Longest time for a document.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most documents in memory, each as long as a signed one may be.
const MOST_KEPT: usize = 64;
const LONGEST: usize = 2 * LONGEST_DOCUMENT;
/// Lifetime of a document that names none: the default of the draft.
const DEFAULT_LIFETIME: HeaderValue = HeaderValue::from_static("max-age=3600");

/// Time for which an answer without a document counts, and the longest one: each answer of the kind in a row doubles the time.
const FAILURE: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(960)];

/// Documents of other agents.
pub struct CapabilityDocuments {
    connector: Arc<Connector>,
    kept: Mutex<BTreeMap<(String, String), KeptDocument>>,
}

/// A document in memory.
#[derive(Clone)]
struct KeptDocument {
    policy: CachePolicy,
    fetched: FetchedDocument,
    used: SystemTime,
    /// Count of answers without a document, in a row.
    failures: u32,
}

impl KeptDocument {
    /// Checks for an answer without a document that still counts, no longer than its maker allows.
    fn is_failure(&self, now: SystemTime) -> bool {
        self.failures > 0 && !self.policy.is_stale(now) && now.duration_since(self.used).is_ok_and(|age| age < pause(self.failures))
    }
}

/// An answer to a request for a document.
#[derive(Clone, Debug)]
pub struct FetchedDocument {
    pub status: StatusCode,
    pub kind: String,
    pub body: Bytes,
    /// The answer was in memory, and its maker was not asked, or said that nothing has changed.
    pub is_kept: bool,
}

impl CapabilityDocuments {
    /// Makes an empty memory.
    pub fn new(connector: &Arc<Connector>) -> Self {
        Self { connector: Arc::clone(connector), kept: Mutex::default() }
    }

    /// Gives the document at `url` in a form of `accept`, from memory where HTTP allows. Names lead within `reach` alone.
    ///
    /// # Errors
    /// When the document can't be had: the reason, for people.
    pub async fn fetch(&self, url: &Url, accept: &'static str, reach: Reach) -> Result<FetchedDocument, String> {
        let place = (url.to_string(), accept.to_owned());
        let request = Request::get(url.as_str()).header(ACCEPT, accept).body(()).map_err(|error| error.to_string())?;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
        let mut sent = request.headers().clone();
        if let Some(kept) = kept.as_ref().filter(|kept| kept.is_failure(SystemTime::now())) {
            return Ok(FetchedDocument { is_kept: true, ..kept.fetched.clone() });
        }
        if let Some(kept) = kept.as_ref().filter(|kept| kept.failures == 0) {
            match kept.policy.before_request(&request, SystemTime::now()) {
                BeforeRequest::Fresh(_) => return Ok(FetchedDocument { is_kept: true, ..kept.fetched.clone() }),
                BeforeRequest::Stale { request, .. } => sent = request.headers,
            }
        }
        let (status, headers, body) = self.get(url, sent, reach).await?;
        let mut response = http::Response::new(());
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        let now = SystemTime::now();
        let failures = if status == StatusCode::OK || status == StatusCode::NOT_MODIFIED {
            0
        } else {
            kept.as_ref().map_or(0, |kept| kept.failures).saturating_add(1)
        };
        let (policy, fetched) = match kept.map(|kept| (kept.policy.after_response(&request, &response, now), kept.fetched)) {
            Some((AfterResponse::NotModified(policy, _), fetched)) => (policy, FetchedDocument { is_kept: true, ..fetched }),
            Some((AfterResponse::Modified(..), _)) | None => {
                let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
                (policy(&request, response, now), FetchedDocument { status, kind, body, is_kept: false })
            }
        };
        self.keep(place, KeptDocument { policy, fetched: fetched.clone(), used: now, failures });
        Ok(fetched)
    }

    /// Keeps a document in place of an older one, if HTTP allows.
    fn keep(&self, place: (String, String), document: KeptDocument) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(&place);
        if !document.policy.is_storable() {
            return;
        }
        if kept.len() >= MOST_KEPT
            && let Some(oldest) = kept.iter().min_by_key(|(_, one)| one.used).map(|(place, _)| place.clone())
        {
            kept.remove(&oldest);
        }
        kept.insert(place, document);
    }

    async fn get(&self, url: &Url, headers: HeaderMap, reach: Reach) -> Result<(StatusCode, HeaderMap, Bytes), String> {
        let client = self.client(url, reach)?;
        let failed = |error: reqwest::Error| format!("{} can't be asked: {}", url.origin().ascii_serialization(), cause(error));
        let mut response = client.get(url.clone()).headers(headers).send().await.map_err(failed)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            body.extend_from_slice(&piece);
            if body.len() > LONGEST {
                return Err(format!("{url} has more than {LONGEST} bytes"));
            }
        }
        Ok((status, headers, body.into()))
    }

    /// Makes a client of TLS 1.3 alone (AEPB, section 4.1); plain text goes no further than this machine.
    fn client(&self, url: &Url, reach: Reach) -> Result<Client, String> {
        let is_written = match url.host() {
            Some(Host::Ipv4(ip)) => reach.allows(ip.into()),
            Some(Host::Ipv6(ip)) => reach.allows(ip.into()),
            Some(Host::Domain(_)) => true,
            None => false,
        };
        if !is_written {
            return Err(format!("{url} leads into a private network, and was not named by the owner of this gate"));
        }
        if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback(url)) {
            return Err(format!("{url} is not https: documents are read over TLS 1.3 alone"));
        }
        let verifier = self.connector.verifier().map_err(|error| error.to_string())?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13]).map_err(|error| error.to_string())?;
        let tls = tls.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        let builder = Client::builder().redirect(redirect::Policy::none()).no_proxy().timeout(PATIENCE).pool_max_idle_per_host(0);
        let builder = builder.tls_backend_preconfigured(tls).dns_resolver(Arc::new(NamesWithin(reach)));
        builder.build().map_err(cause)
    }
}

/// Time for which the last of so many answers without a document counts.
fn pause(failures: u32) -> Duration {
    FAILURE[0].saturating_mul(1 << failures.saturating_sub(1).min(8)).min(FAILURE[1])
}

/// Makes the policy of an answer. One that names no lifetime has that of the draft.
fn policy(request: &Request<()>, mut response: http::Response<()>, now: SystemTime) -> CachePolicy {
    let headers = response.headers_mut();
    if !headers.contains_key(CACHE_CONTROL) && !headers.contains_key(EXPIRES) {
        headers.insert(CACHE_CONTROL, DEFAULT_LIFETIME);
    }
    CachePolicy::new_options(request, &response, now, CacheOptions { shared: false, ..CacheOptions::default() })
}

/// Finds the words at the end of a chain of errors.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut last: &dyn std::error::Error = &error;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}

/// Addresses of names, within a reach.
struct NamesWithin(Reach);

impl Resolve for NamesWithin {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0.clone();
        Box::pin(async move { look_up(&name, |ip| reach.allows(ip), ()).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy_of(fields: &[(&'static str, &'static str)]) -> CachePolicy {
        let request = Request::get("https://a.example/.well-known/aepb").body(()).unwrap();
        let mut response = http::Response::new(());
        response
            .headers_mut()
            .extend(fields.iter().map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value))));
        policy(&request, response, SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_064_150))
    }

    #[test]
    fn ae_03_documents_are_kept_as_http_allows() {
        let lifetime = |fields: &[_]| {
            let policy = policy_of(fields);
            policy.is_storable().then(|| policy.time_to_live(SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_064_150)).as_secs())
        };
        assert_eq!(lifetime(&[]), Some(3600), "the default of the draft");
        assert_eq!(lifetime(&[("cache-control", "max-age=60")]), Some(60));
        assert_eq!(lifetime(&[("cache-control", "max-age=60"), ("age", "50")]), Some(10));
        assert_eq!(lifetime(&[("cache-control", "private, max-age=60")]), Some(60));
        assert_eq!(lifetime(&[("cache-control", "no-cache")]), Some(0));
        assert_eq!(lifetime(&[("cache-control", "no-store, max-age=60")]), None);
    }

    #[test]
    fn ae_03_an_answer_without_a_document_counts_for_minutes() {
        assert_eq!([1, 2, 3, 5, 6, 99].map(|failures| pause(failures).as_secs() / 60), [1, 2, 4, 16, 16, 16]);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_064_150);
        let fetched = FetchedDocument { status: StatusCode::NOT_FOUND, kind: String::new(), body: Bytes::new(), is_kept: false };
        let kept = |failures| KeptDocument { policy: policy_of(&[]), fetched: fetched.clone(), used: now, failures };
        assert!(kept(1).is_failure(now + Duration::from_secs(59)) && !kept(1).is_failure(now + Duration::from_secs(60)));
        assert!(kept(2).is_failure(now + Duration::from_secs(119)) && !kept(0).is_failure(now));
    }

    #[tokio::test]
    async fn ae_05_documents_are_read_over_tls_or_within_the_machine() {
        let documents = CapabilityDocuments::new(&Arc::new(Connector::new()));
        for (url, reach, words) in [
            ("http://a.example/.well-known/aepb", Reach::public(), "is not https"),
            ("https://10.0.0.1/.well-known/aepb", Reach::public(), "private network"),
            ("https://[::1]/.well-known/aepb", Reach::public(), "private network"),
            ("ftp://a.example/.well-known/aepb", Reach::public(), "is not https"),
        ] {
            let refused = documents.fetch(&Url::parse(url).unwrap(), "application/json", reach).await.unwrap_err();
            assert!(refused.contains(words), "{url}: {refused}");
        }
    }
}
