//! Datagrams that the system dropped because a socket was full, as the system counts them. Reads only.

use std::os::fd::{AsFd, AsRawFd};

/// Room that a receiving socket asks for; the system may grant less.
const ROOM: usize = 4 << 20;

/// Asks for room for bursts. A system that grants less only drops earlier, and counts that.
pub(super) fn make_room(socket: impl AsFd) {
    if rustix::net::sockopt::set_socket_recv_buffer_size(socket, ROOM).is_err() {
        // The room that the system gives by itself.
    }
}

/// Datagrams dropped at a socket so far; `None` where the system does not tell.
pub(super) fn dropped(socket: &impl AsRawFd) -> Option<u64> {
    let inode = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).ok()?;
    let inode = inode.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned();
    ["/proc/self/net/udp", "/proc/self/net/udp6"].iter().find_map(|file| of_table(&std::fs::read_to_string(file).ok()?, &inode))
}

/// The last column of the line of a socket.
fn of_table(table: &str, inode: &str) -> Option<u64> {
    let line = table.lines().skip(1).find(|line| line.split_whitespace().nth(9) == Some(inode))?;
    line.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn what_a_full_socket_drops_is_counted() {
        let (full, sender) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let Some(before) = dropped(&full) else { return };
        assert_eq!(before, 0);
        let (to, text) = (full.local_addr().unwrap(), [0; 8 << 10]);
        for _ in 0..2_000 {
            sender.send_to(&text, to).unwrap();
        }
        assert!(dropped(&full) > Some(0));
    }

    #[test]
    fn a_table_names_the_drops_last() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
            4: 0100007F:0202 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0000000000000000 12\n";
        assert_eq!((of_table(table, "4711"), of_table(table, "4712"), of_table("", "1")), (Some(12), None, None));
    }
}
