//! The skills of a caller: the tools that its view lists. Calls none.

use std::sync::Arc;

use agent_proto::served::written::skill;
use bytes::Bytes;
use call::judge::gate::Gate;
use call::tree::back::{Back, Sink};
use call::tree::caller::Caller;
use call::words::cancel::Cancel;
use json::Object;
use mcp_proto::envelope::{Answer, Request};

/// Most skills and most bytes of a card.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 8 << 20;

/// Lists the skills of `caller`, as far as a card has room.
pub async fn skills(gate: &Arc<Gate>, caller: &Arc<Caller>) -> Vec<String> {
    let back = Back::new(Arc::clone(caller), Sink::None, None, Cancel::default());
    let (mut found, mut size, mut params) = (Vec::new(), 0, Object::empty());
    loop {
        let request = Request { id: Bytes::from_static(b"1"), method: "tools/list".into(), params };
        let Ok(Answer::Result(page)) = call::way::serve(gate, &request, &back).await else { return found };
        for tool in page.get("tools").as_deref().and_then(json::elements).unwrap_or_default() {
            let Some(written) = skill(tool) else { continue };
            size += written.len();
            if found.len() == MOST || size > MOST_BYTES {
                return found;
            }
            found.push(written);
        }
        let Some(cursor) = page.get("nextCursor") else { return found };
        params = Object::from([b"{\"cursor\":", &cursor[..], b"}"].concat());
    }
}
