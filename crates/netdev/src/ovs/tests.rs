//! A database that lies about its answer, or is an older one.

use std::path::Path;

use serde_json::json;
use tokio::net::UnixListener;

use super::*;

fn switch(dir: &Path) -> (Ovs, UnixListener) {
    let socket = dir.join("db.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let settings = DeviceSettings { socket: Some(socket.display().to_string()), ..DeviceSettings::new("s") };
    (Ovs::new(&settings), listener)
}

/// Bytes of this process that were in memory at the most.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[tokio::test]
async fn nm_09_a_lying_database_costs_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (mut ovs, listener) = switch(dir.path());
    ovs.longest = 4 << 20;
    let before = peak();
    let empty = format!("{{\"id\":1,\"error\":null,\"result\":[{}", "[],".repeat(20_000));
    let named = format!("{{\"id\":1,\"error\":null,\"result\":[{}", "{\"a\":1},".repeat(8_000));
    let long = format!("{{\"id\":1,\"error\":null,\"result\":\"{}", "x".repeat(60_000));
    let calls = "{\"id\":\"echo\",\"method\":\"echo\",\"params\":[]} ".repeat(1_000);
    for (first, then) in
        [(&empty, "[],".repeat(20_000)), (&named, "{\"a\":1},".repeat(8_000)), (&long, "x".repeat(60_000)), (&calls, calls.clone())]
    {
        let lying = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut hears, mut says) = stream.split();
            let (mut heard, mut said) = (tokio::io::sink(), first.clone());
            let hearing = tokio::io::copy(&mut hears, &mut heard);
            let saying = async {
                while says.write_all(said.as_bytes()).await.is_ok() {
                    said.clone_from(&then);
                }
            };
            let _gone = tokio::join!(hearing, saying);
        };
        let (fault, ()) = tokio::join!(ovs.running(), lying);
        assert_eq!(fault.unwrap_err().code, Code::Unreachable);
    }
    // A valid answer of the longest that is taken, in any form that has many values.
    for value in ["[],", "{\"a\":1},", "\"\","] {
        let cost = |byte| if byte == b'{' { 20 } else { usize::from(b"[,:".contains(&byte)) };
        let count = (ovs.longest / 12 / value.bytes().map(cost).sum::<usize>()).min(ovs.longest / value.len()) - 100;
        let whole = format!("{{\"id\":1,\"error\":null,\"result\":[{}0]}}", value.repeat(count));
        let answering = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            drop(stream.write_all(whole.as_bytes()).await);
            stream
        };
        let (fault, _stream) = tokio::join!(ovs.running(), answering);
        assert!(fault.unwrap_err().detail.contains("table is missing"), "{value}");
    }
    assert!(peak() - before < 15 * ovs.longest, "{} MiB", (peak() - before) >> 20);
}

#[tokio::test]
async fn nm_02_an_older_database_is_read_with_all_columns() {
    let dir = tempfile::tempdir().unwrap();
    let (ovs, listener) = switch(dir.path());
    let old = json!([{ "error": "syntax error", "details": "cfm_mpid is not a valid column name" }]);
    let rows = json!([{ "rows": [{ "bridges": ["set", []], "external_ids": ["map", []] }] }, { "rows": [] }, { "rows": [] }, { "rows": [] }, { "rows": [] }]);
    let answering = async {
        let mut asked = Vec::new();
        for result in [old, rows] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 64 << 10];
            let length = stream.read(&mut bytes).await.unwrap();
            asked.push(String::from_utf8_lossy(&bytes[..length]).contains("columns"));
            stream.write_all(json!({ "id": 1, "error": null, "result": result }).to_string().as_bytes()).await.unwrap();
        }
        asked
    };
    let (read, asked) = tokio::join!(ovs.running(), answering);
    assert_eq!((read, asked), (Ok(String::new()), vec![true, false]));
}
