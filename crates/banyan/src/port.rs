//! Holders of TCP ports of this machine, from `/proc` where available. Opens no socket and ends nobody.

use std::fs;
use std::net::{IpAddr, SocketAddr};

/// A listening process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) pid: u32,
    /// The program, without its arguments, which may hold secrets.
    pub(crate) program: String,
}

/// Finds the process that listens on `address`; `None` where that is not known.
pub(crate) fn holder(address: SocketAddr) -> Option<Holder> {
    let inodes =
        ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().filter_map(|p| fs::read_to_string(p).ok()).flat_map(|t| listening(&t, address));
    let wanted: Vec<String> = inodes.map(|i| format!("socket:[{i}]")).collect();
    let processes = fs::read_dir("/proc").ok()?.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    processes.into_iter().find(|pid| holds(*pid, &wanted)).map(|pid| Holder { pid, program: program(pid) })
}

/// Words the complaint about a taken port.
pub(crate) fn taken(address: SocketAddr) -> String {
    let (by, end) = match holder(address) {
        Some(Holder { pid, program }) => {
            let end = if program == "`banyan`" { format!("end it with `banyan stop --gate {pid}`") } else { "end it".to_owned() };
            (format!("{program} (process {pid}) listens there"), end)
        }
        None => ("another program listens there".to_owned(), "end it".to_owned()),
    };
    format!("{address} is taken: {by}\n  {end}, or choose another port: --listen {}:0 takes any free one", host(address.ip()))
}

fn host(ip: IpAddr) -> String {
    if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() }
}

/// The inodes of sockets in state LISTEN on `address` or on every address, from the text of `/proc/net/tcp` or `tcp6`.
fn listening(table: &str, address: SocketAddr) -> Vec<String> {
    let port = format!("{:04X}", address.port());
    let local = match address.ip() {
        IpAddr::V4(ip) => format!("{:08X}", u32::from_ne_bytes(ip.octets())),
        IpAddr::V6(ip) => ip.octets().chunks(4).map(|c| format!("{:08X}", u32::from_ne_bytes([c[0], c[1], c[2], c[3]]))).collect(),
    };
    let ours = |at: &str| {
        at.split_once(':').is_some_and(|(a, p)| p == port && (a == local || a.bytes().all(|b| b == b'0') || address.ip().is_unspecified()))
    };
    let rows = table.lines().skip(1).map(|l| l.split_whitespace().collect::<Vec<_>>());
    rows.filter(|r| r.len() > 9 && r[3] == "0A" && ours(r[1])).map(|r| r[9].to_owned()).collect()
}

fn holds(pid: u32, sockets: &[String]) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|f| fs::read_link(f.path()).ok()).any(|l| l.to_str().is_some_and(|l| sockets.iter().any(|s| s == l)))
}

fn program(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).map_or_else(|_| "a program".to_owned(), |n| format!("`{}`", n.trim()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_program_behind_a_taken_port_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        if cfg!(target_os = "linux") {
            assert_eq!(holder(address).map(|h| h.pid), Some(std::process::id()));
        }
        let text = taken(address);
        assert!(text.contains(&format!("{address} is taken")) && text.contains("--listen 127.0.0.1:0"), "{text}");
    }

    #[test]
    fn only_listening_sockets_of_the_address_count() {
        let table = "  sl  local_address rem_address   st\n\
            0: 0100007F:1CF3 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 11 1\n\
            1: 0100007F:1CF3 0100007F:9999 01 00000000:00000000 00:00000000 00000000 0 0 12 1\n\
            2: 00000000:1CF4 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 13 1\n";
        assert_eq!(listening(table, "127.0.0.1:7411".parse().unwrap()), ["11"]);
        assert_eq!(listening(table, "127.0.0.1:7412".parse().unwrap()), ["13"]);
        assert_eq!(listening(table, "127.0.0.2:7411".parse().unwrap()), [""; 0]);
    }
}
