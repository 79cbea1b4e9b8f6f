//! Methods of the draft that MCP lacks, in the words of MCP: a gate has rules, approvals, budgets and a record for those. Keeps no request.

use json::{Members, elements};

use super::{answer, replaced, with_first};

/// Parts of a text that are streamed.
const MOST_PARTS: usize = 64;
/// Files of a device that are written as resources.
const WRITABLE: [&str; 2] = ["network:///file/candidate-config", "network:///file/startup-config"];
/// Advice for a write of another form.
const FORM: &str = "resources/write takes `uri`, which is network:///file/candidate-config or network:///file/startup-config, and `contents` \
    with one item, which holds the configuration as `text`";

/// The request with another method.
pub(super) fn with_method(message: &[u8], members: &Members<'_>, method: &str) -> Vec<u8> {
    let quoted = json::quote(method);
    members.span("method").map_or_else(|| message.to_vec(), |span| replaced(message, span, quoted.as_bytes()))
}

/// `resources/write` (section 5.3) as the call of `network.file.push` that does the same.
///
/// # Errors
/// Advice for the controller.
pub(super) fn pushed(id: &[u8], params: &Members<'_>) -> Result<Vec<u8>, &'static str> {
    let (filename, content) = written(params).ok_or(FORM)?;
    let meta = params.get("_meta").map(|meta| [b",\"_meta\":", meta].concat()).unwrap_or_default();
    let filename = json::quote(&filename);
    let call: [&[u8]; 9] = [
        b"{\"jsonrpc\":\"2.0\",\"id\":",
        id,
        b",\"method\":\"tools/call\",\"params\":{\"name\":\"network.file.push\",\"arguments\":{\"filename\":",
        filename.as_bytes(),
        b",\"content\":",
        content,
        b"}",
        &meta,
        b"}}",
    ];
    Ok(call.concat())
}

/// Name of the file, and its raw text.
fn written<'a>(params: &Members<'a>) -> Option<(String, &'a [u8])> {
    let has_only = |of: &Members<'_>, known: &[&str]| of.iter().all(|(key, _)| known.contains(&&*key));
    let uri = params.str("uri").filter(|uri| WRITABLE.contains(&&**uri))?;
    let items = params.get("contents").filter(|raw| raw.starts_with(b"[")).and_then(elements)?;
    let [item] = items.as_slice() else { return None };
    let item = Members::again(item);
    let is_same = !item.has("uri") || item.str("uri").as_ref() == Some(&uri);
    let is_sound = is_same && has_only(params, &["uri", "contents", "_meta"]) && has_only(&item, &["uri", "mimeType", "text", "_meta"]);
    let text = item.get("text").filter(|text| is_sound && text.starts_with(b"\""))?;
    Some((uri.rsplit('/').next()?.to_owned(), text))
}

/// The parts of a prompt under a handle, and the answer with the handle (section 6.4): the last part has the calls. `None`: no text to stream.
pub(super) fn streamed(members: &Members<'_>, handle: u64, is_draft: bool) -> Option<Vec<Vec<u8>>> {
    let (id, result) = (members.get("id")?, members.get("result")?);
    let result_members = members.object("result")?;
    let message = Members::again(result_members.get("messages").and_then(elements)?.first()?);
    let markdown = message.str("content").or_else(|| message.object("content")?.str("text"))?.into_owned();
    let method = if is_draft { "prompts/stream" } else { "notifications/prompts/stream" };
    let parts: Vec<&str> = markdown.splitn(MOST_PARTS, "\n\n").collect();
    let mut all = Vec::with_capacity(parts.len() + 1);
    for (number, part) in (1..).zip(&parts) {
        let meta = result_members.get("_meta").filter(|_| number == parts.len());
        let meta = meta.map(|meta| [b",\"_meta\":", meta].concat()).unwrap_or_default();
        let (count, part) = (parts.len(), json::quote(part));
        let head = format!(
            r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"handle":"prompt-{handle}","part":{number},"parts":{count},"markdown":{part}"#
        );
        all.push([head.as_bytes(), &meta, b"}}"].concat());
    }
    let free = match result_members.member_span("handle") {
        Some(_) => return None,
        None => with_first(result, "handle", format!("\"prompt-{handle}\"").as_bytes()),
    };
    all.push(answer(id, "result", &free));
    Some(all)
}
