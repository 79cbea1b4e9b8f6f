//! `POST /-/policy/replay`: what would become now of recorded calls, behind the admin token. Decides nothing.

use std::path::Path;
use std::sync::Arc;

use config::rules;
use disk::journal::archive::Archive;
use http::Response;
use hyper::body::Incoming;
use jiff::tz::TimeZone;
use serde::Deserialize;

use crate::Gateway;
use crate::admin::approvals::posted;
use crate::admin::routes::json;
use crate::admin::rules::replay;
use call::words::refusal::Refusal;
use door::reply::Payload;

#[derive(Deserialize)]
struct ReplayRequest {
    /// Microseconds since 1970.
    #[serde(default)]
    since: u64,
    /// Text of rules to ask in place of those in force.
    rules: Option<String>,
}

pub(super) async fn answer(gateway: &Gateway, body: &mut Incoming) -> Result<Response<Payload>, Refusal> {
    let ReplayRequest { since, rules: given } = posted(body).await?;
    let tree = gateway.0.gate.mounts.tree.load_full();
    let (own, zone) = tree.config.policy.as_ref().map_or((None, TimeZone::system()), |own| (Some(&own.policies), own.time_zone.clone()));
    let asked = match given {
        Some(text) => Arc::new(rules::parse(Path::new("the given rules"), &text).map_err(|bad| Refusal::failed(bad.to_string()))?),
        None => Arc::clone(own.ok_or_else(|| Refusal::not_found("no rules are in force: name a file of rules"))?),
    };
    let nothing = || Refusal::not_found("nothing is recorded");
    let dir = gateway.audit().ok_or_else(nothing)?.directory.ok_or_else(nothing)?;
    let told = tokio::task::spawn_blocking(move || replay(&tree, &asked, &zone, &Archive::open(dir.as_ref())?, since)).await;
    Ok(json(&told.map_err(|error| Refusal::failed(error.to_string()))?.map_err(super::audit::unread)?))
}
