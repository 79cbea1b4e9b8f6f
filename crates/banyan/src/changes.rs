//! `/-/devices`: the changes of network devices at the listener, for the owner and the console: state, diff, confirmation, rollback. Decides
//! nothing about a change.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use call::words::party::Party;
use call::words::refusal::Refusal;
use config::resolved::Config;
use config::secret::Sources;
use door::body;
use door::entrance::Entrance;
use door::part::{GatePart, Ground, InstalledPart};
use door::port::Door;
use door::reply::{self, Payload, typed};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use netdev::{ChangeState, DeviceSecrets, DeviceSettings, Devices, Fault, Settler, Site};
use serde::Serialize;
use serde_json::json;

use crate::places::person;

const PATH: &str = "/-/devices";
/// Longest time for a look at a device.
const LOOK: Duration = Duration::from_secs(10);

/// Devices, for the list of a gate's parts.
pub(crate) struct DevicePart;

impl GatePart for DevicePart {
    fn install(&self, ground: &Ground) -> Arc<dyn InstalledPart> {
        let door =
            DeviceDoor { entrance: Arc::clone(&ground.entrance), sources: Arc::clone(&ground.sources), state: ground.state_dir.clone() };
        Arc::new(InstalledDevices(Arc::new(door)))
    }
}

/// Devices at one gate.
struct InstalledDevices(Arc<DeviceDoor>);

impl InstalledPart for InstalledDevices {
    fn doors(&self) -> Vec<Arc<dyn Door>> {
        vec![Arc::<DeviceDoor>::clone(&self.0)]
    }
}

struct DeviceDoor {
    entrance: Arc<Entrance>,
    sources: Arc<dyn Sources>,
    state: PathBuf,
}

/// State of a change, with the diff for people.
#[derive(Serialize)]
struct ShownChange {
    #[serde(flatten)]
    state: ChangeState,
    /// `null`: nothing is open and nothing waits.
    diff: Option<String>,
    /// Reason for which there is no diff, where there should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff_missing: Option<String>,
}

impl Door for DeviceDoor {
    fn is_here(&self, path: &str) -> bool {
        path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn answer(&self, request: Request<Incoming>, _: Option<Arc<Party>>) -> BoxFuture<'_, Response<Payload>> {
        async move {
            let (parts, mut body) = request.into_parts();
            let answered = if self.entrance.is_owner(&parts) {
                self.answered(&parts.method, parts.uri.path()).await
            } else {
                Err(Refusal::refused("this takes the admin token, which the `banyan` command has; in a browser: `banyan console`"))
            };
            body::pass_over(&mut body).await;
            match answered {
                Ok(value) => typed(StatusCode::OK, "application/json", value),
                Err(refusal) => reply::refusal(refusal, self.entrance.gate.config.load().wants_credential()),
            }
        }
        .boxed()
    }
}

impl DeviceDoor {
    async fn answered(&self, method: &Method, path: &str) -> Result<Bytes, Refusal> {
        let rest = path.strip_prefix(PATH).unwrap_or_default().trim_start_matches('/');
        let config = self.entrance.gate.config.load_full();
        match (method, rest.split_once('/').unwrap_or((rest, ""))) {
            (&Method::GET, ("", "")) => self.all(&config),
            (&Method::GET, (name, "")) => as_json(&shown(&self.site(name, &config)?).await?),
            (&Method::POST, (name, act @ ("confirm" | "rollback" | "take-over"))) => self.settle(&self.site(name, &config)?, act).await,
            _ => Err(Refusal::not_found(format!("there is no {method} {path} here: `banyan device list` shows the devices"))),
        }
    }

    /// The state of every device that ever had a change.
    fn all(&self, config: &Config) -> Result<Bytes, Refusal> {
        let devices = config.values.get::<Devices>().cloned().unwrap_or_default().all;
        let known = devices.len();
        let states: Result<Vec<_>, _> =
            devices.into_values().map(|settings| Ok::<_, Refusal>(self.open(settings, &DeviceSecrets::default())?.listed())).collect();
        let changed: Vec<_> = states?.into_iter().filter(|state| state.phase != "none").collect();
        as_json(&json!({ "devices": changed, "known": known }))
    }

    async fn settle(&self, site: &Site, act: &str) -> Result<Bytes, Refusal> {
        let person = person();
        let done = match act {
            "confirm" => site
                .confirm(Settler::Person(&person), None, false)
                .await
                .map(|is_saved| json!({ "status": "confirmed", "saved": is_saved })),
            "rollback" => site.roll_back(Settler::Person(&person)).await.map(|()| json!({ "status": "rolled_back" })),
            _ => site.take_over(&person).await.map(|()| json!({ "status": "taken_over", "owner": person })),
        };
        as_json(&done.map_err(|fault| failed(&fault))?)
    }

    fn site(&self, name: &str, config: &Config) -> Result<Site, Refusal> {
        let settings = config.values.get::<Devices>().and_then(|devices| devices.all.get(name).cloned());
        let settings = settings.ok_or_else(|| Refusal::not_found("there is no such device: `banyan device list` shows them"))?;
        let secrets = DeviceSecrets::resolve(config, name, &*self.sources).map_err(|error| Refusal::failed(error.to_string()))?;
        self.open(settings, &secrets)
    }

    fn open(&self, settings: DeviceSettings, secrets: &DeviceSecrets) -> Result<Site, Refusal> {
        let unusable = |error: std::io::Error| Refusal::failed(format!("{} can't be used: {error}", self.state.display()));
        Site::open(settings, secrets, &self.state).map_err(unusable)
    }
}

/// The change with its diff: a device that does not answer leaves the rest to be seen.
async fn shown(site: &Site) -> Result<ShownChange, Refusal> {
    let state = site.standing().map_err(|fault| failed(&fault))?;
    let (diff, diff_missing) = match tokio::time::timeout(LOOK, site.diff()).await {
        Ok(Ok(diff)) => (diff, None),
        Ok(Err(fault)) => (None, Some(fault.to_string())),
        Err(_) => (None, Some(format!("the device gave no answer in {} s", LOOK.as_secs()))),
    };
    Ok(ShownChange { state, diff, diff_missing })
}

fn as_json(value: &impl Serialize) -> Result<Bytes, Refusal> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| Refusal::failed(error.to_string()))
}

fn failed(fault: &Fault) -> Refusal {
    Refusal::failed(format!("{}: {}", fault.detail.trim_end_matches('.'), fault.code.recovery()))
}
