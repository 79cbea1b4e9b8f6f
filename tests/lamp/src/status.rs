//! `GET /lamps`: the lamps of the configuration in force, and which of them are lit. Everybody who may call may read it.

use std::sync::Arc;

use bytes::Bytes;
use call::words::party::Party;
use config::resolved::Transport;
use door::entrance::Entrance;
use door::entry;
use door::port::{Door, fields};
use door::reply::{Payload, refuse, typed};
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Map, Value, json};

use crate::bus::Bus;
use crate::section::LampSettings;

/// Lamps at the listener.
pub struct LampDoor {
    pub bus: Arc<Bus>,
    pub entrance: Arc<Entrance>,
}

impl Door for LampDoor {
    fn is_here(&self, path: &str) -> bool {
        path == "/lamps"
    }

    fn answer(&self, request: Request<Incoming>, party: Option<Arc<Party>>) -> BoxFuture<'_, Response<Payload>> {
        let (parts, _) = request.into_parts();
        let config = self.entrance.gate.config.load();
        Box::pin(std::future::ready(match entry::enter(&config, &self.entrance.trust, party.as_ref(), &fields(&parts)) {
            Ok(_) => typed(StatusCode::OK, "application/json", Bytes::from(self.lamps().to_string())),
            Err(refused) => refuse(refused.status, None, -32000, &refused.why).into_http(),
        }))
    }
}

impl LampDoor {
    fn lamps(&self) -> Value {
        let config = self.entrance.gate.config.load();
        let mut lamps = Map::new();
        for mount in config.mounts.values() {
            if let Transport::Family(family) = &mount.transport
                && let Some(lamp) = family.settings::<LampSettings>()
            {
                lamps.insert(mount.name.to_string(), json!({"lit": self.bus.is_lit(&lamp.line), "colour": format!("{:?}", lamp.colour)}));
            }
        }
        Value::Object(lamps)
    }
}
