//! Connections shared by mounts: at one origin, with no TLS settings of their own. Knows no request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use runtime::reach::Reach;
use runtime::tls::Connector;

use crate::upstream::pool::Pool;

/// Pools of all origins in use.
///
/// Many servers behind one address are common, and a connection used a moment ago costs less than a connection of its own for each.
#[derive(Default)]
pub struct Origins(Mutex<HashMap<String, Weak<Pool>>>);

impl Origins {
    /// Pool for the origin of `url`.
    pub fn pool(&self, url: &url::Url, connector: &Arc<Connector>, reach: Option<Reach>) -> Arc<Pool> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = match &reach {
            None => url.origin().ascii_serialization(),
            Some(reach) => format!("{} {reach:?}", url.origin().ascii_serialization()),
        };
        if let Some(pool) = known.get(&origin).and_then(Weak::upgrade) {
            return pool;
        }
        known.retain(|_, pool| pool.strong_count() > 0);
        let pool = Pool::new(url, Arc::clone(connector), None, reach);
        known.insert(origin, Arc::downgrade(&pool));
        pool
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::resolved::Hosts;

    #[test]
    fn only_servers_at_one_origin_share_connections() {
        let (origins, connector) = (Origins::default(), Arc::default());
        let pool = |url: &str| origins.pool(&url::Url::parse(url).unwrap(), &connector, None);
        let first = pool("http://a.example/mcp/1");
        assert!(Arc::ptr_eq(&first, &pool("http://A.example:80/mcp/2?x=1")));
        let others = ["https://a.example/mcp/1", "http://a.example:81/mcp/1", "http://b.example/mcp/1"].map(pool);
        for (i, other) in others.iter().enumerate() {
            assert!(!Arc::ptr_eq(&first, other), "{i}");
            assert!(others[..i].iter().all(|before| !Arc::ptr_eq(before, other)), "{i}");
        }
        let reach = Hosts::default().reach(&url::Url::parse("http://a.example/").unwrap());
        let bounded = origins.pool(&url::Url::parse("http://a.example/").unwrap(), &connector, Some(reach));
        assert!(!Arc::ptr_eq(&first, &bounded), "who may be led anywhere makes no connections for others");
        drop((first, others, bounded));
        let last = pool("http://c.example/");
        assert_eq!(origins.0.lock().unwrap().len(), 1);
        drop(last);
    }
}
