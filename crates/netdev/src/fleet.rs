//! Many devices in one process: each connection to the socket names a device, or a group of devices that other connections have named, and is
//! then served like a pipe. Does not know the gate.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use equipment::{DeviceLimits, DeviceSecrets, DeviceSettings, GroupSettings};
use mcp_server::subject;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use crate::device::Compat;
use crate::group::DeviceGroup;
use crate::room;
use crate::served::{ServedDevices, device_subject};
use crate::serving::serve_site;

/// Bytes of the line with the name of a device or a group.
const OPENING: u64 = 4 << 20;
/// Pause after a connection that could not be taken.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// First line of a connection: the arguments and variables of a process that served this alone.
#[derive(Deserialize)]
struct DeviceOpening {
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// Serves devices and groups to whoever connects. Never ends.
pub async fn serve_fleet(listener: UnixListener, state: PathBuf, (compat, limits): (Compat, DeviceLimits)) {
    room::limit(limits);
    // A panic ends the whole process, and nothing else would say which of its devices was to blame.
    subject::name_in_panics();
    let served = ServedDevices::default();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (served, state) = (served.clone(), state.clone());
        tokio::spawn(async move {
            // Whoever connected sees the end of the connection.
            drop(serve_one(stream, &served, &state, compat).await);
        });
    }
}

async fn serve_one(stream: UnixStream, served: &ServedDevices, state: &Path, compat: Compat) -> io::Result<()> {
    let (reader, writer) = stream.into_split();
    let (mut reader, mut line) = (BufReader::new(reader), Vec::new());
    (&mut reader).take(OPENING).read_until(b'\n', &mut line).await?;
    if !line.ends_with(b"\n") {
        return Err(io::Error::other("the first line is too long"));
    }
    let DeviceOpening { args, env } = serde_json::from_slice(&line)?;
    let argument = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
    if let Some(group) = argument("--group") {
        let group: GroupSettings = serde_json::from_str(group)?;
        let about = format!("the group {}", group.name);
        return subject::within(&about, mcp_server::run(Arc::new(DeviceGroup::new(group, served.clone())), reader, writer)).await;
    }
    let settings = argument("--settings").ok_or_else(|| io::Error::other("the first line names no device"))?;
    let settings = DeviceSettings::read(settings).map_err(io::Error::other)?;
    let secrets = DeviceSecrets::handed_over(|variable| env.get(variable).cloned());
    let device = served.enter(settings, secrets, state)?;
    let about = device_subject(&device.site.settings.name);
    subject::within(&about, serve_site(Arc::clone(&device.site), compat, reader, writer)).await
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::AsyncWriteExt;

    use super::*;

    fn settings(name: &str) -> DeviceSettings {
        DeviceSettings { groups: vec!["edge".into()], ..DeviceSettings::new(name) }
    }

    #[tokio::test]
    async fn a_group_answers_for_devices_that_fail() {
        let dir = tempfile::tempdir().unwrap();
        let served = ServedDevices::default();
        let unreachable = DeviceSettings { bindir: Some(dir.path().display().to_string()), ..settings("r1") };
        let _r1 = served.enter(unreachable, DeviceSecrets::default(), dir.path()).unwrap();
        let (here, there) = UnixStream::pair().unwrap();
        let path = dir.path().to_owned();
        tokio::spawn(async move { serve_one(there, &served, &path, Compat::Auto).await });
        let (reader, mut writer) = here.into_split();
        let group = json!({ "name": "edge", "devices": ["r1", "r2"] }).to_string();
        let call = |id: u64, tool: &str, devices: Value| {
            let refused = match id {
                4 => json!({ "r1": { "reason": "gated", "decision": "d1" } }),
                5 | 6 => json!({ "r1": { "reason": "hidden" } }),
                _ => json!({}),
            };
            let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
                "io.banyan/refused": refused });
            let params = json!({ "name": tool, "arguments": { "cmd": "show version", "devices": devices }, "_meta": meta });
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
        };
        let opening = json!({ "args": ["device", "serve", "--group", group] }).to_string();
        let lines = [
            opening,
            call(1, "network.cli.exec", json!(["r1", "r2"])),
            call(2, "network.cli.exec", json!(["r3"])),
            call(3, "network.commit", json!(["r1"])),
            call(4, "network.cli.exec", json!(["r1", "r1"])),
            call(5, "network.cli.exec", json!(["r1"])),
            call(6, "network.cli.exec", json!(["r2"])),
        ];
        writer.write_all(format!("{}\n", lines.join("\n")).as_bytes()).await.unwrap();
        let (mut answers, mut reader) = (BTreeMap::new(), BufReader::new(reader).lines());
        while answers.len() < 6 {
            let answer: Value = serde_json::from_str(&reader.next_line().await.unwrap().unwrap()).unwrap();
            answers.insert(answer["id"].as_u64().unwrap(), answer);
        }
        let devices = &answers[&1]["result"]["structuredContent"]["devices"];
        assert_eq!(
            (&devices["r2"]["error"]["code"], &devices["r2"]["error"]["retryPossible"]),
            (&json!(-32082), &json!(true)),
            "{answers:#?}"
        );
        assert!(devices["r1"]["error"]["detail"].is_string() && answers[&1]["result"]["isError"] == true, "{answers:#?}");
        assert!(answers[&2].to_string().contains("no device of the group"), "{answers:#?}");
        assert!(answers[&5].to_string().contains("no device of the group"), "{answers:#?}");
        let seen = &answers[&6]["result"]["structuredContent"]["devices"];
        assert!(seen["r1"].is_null() && seen["r2"].is_object(), "{answers:#?}");
        assert_eq!(answers[&3]["error"]["code"], -32602, "{answers:#?}");
        let refused = &answers[&4]["result"]["structuredContent"];
        assert_eq!((&refused["devices"]["r1"]["error"]["code"], &refused["failed"]), (&json!(-32083), &json!(1)), "{answers:#?}");
        assert!(refused.to_string().contains("make it there") && refused.to_string().contains("decision d1"), "{answers:#?}");
    }
}
