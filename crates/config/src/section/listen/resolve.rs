//! Resolves the address to listen on, and refuses an address open to everybody. Opens no listener.

use std::net::SocketAddr;

use super::file::ListenForm;
use crate::file::At;
use crate::problem::Flaw;
use crate::reading::FileReading;
use crate::resolved::Config;

/// The refusal of an address open to other machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}\n  {}", self.message(), self.help())]
pub enum OpenListen {
    /// Nobody needs a token.
    Calls(SocketAddr),
    /// Tokens for rooms are handed out (`dev_tokens`).
    RoomTokens(SocketAddr),
}

impl OpenListen {
    /// Sections that make callers known.
    const WANTED: &[&str] = &["issuer", "tls", "token"];

    /// Gives the address.
    pub fn address(self) -> SocketAddr {
        match self {
            Self::Calls(address) | Self::RoomTokens(address) => address,
        }
    }

    fn message(self) -> String {
        let address = self.address();
        match self {
            Self::Calls(_) => {
                format!("{address} can be reached from other machines, and no token is configured: anybody could call every tool")
            }
            Self::RoomTokens(_) => {
                format!("{address} can be reached from other machines, and `dev_tokens` in [rooms] hands out tokens for every room")
            }
        }
    }

    fn help(self) -> &'static str {
        match self {
            Self::Calls(_) => "make a token with `banyan token add NAME`, or listen on 127.0.0.1",
            Self::RoomTokens(_) => {
                "start the gate anew with `listen` on 127.0.0.1, or leave out `dev_tokens` and make tokens with `banyan room token`"
            }
        }
    }
}

/// Refuses an address open to other machines while nobody needs a credential, or while tokens for rooms are handed out.
pub fn check_listen(listen: SocketAddr, config: &Config) -> Result<(), OpenListen> {
    if listen.ip().is_loopback() {
        Ok(())
    } else if !config.wants_credential() {
        Err(OpenListen::Calls(listen))
    } else if config.rooms.dev_tokens {
        Err(OpenListen::RoomTokens(listen))
    } else {
        Ok(())
    }
}

/// Warns of an address at which others can listen in, for people.
pub fn exposed(listen: SocketAddr, config: &Config) -> Option<String> {
    let open = !listen.ip().is_loopback() && config.trust.tls.is_none();
    open.then(|| {
        format!(
            "tokens and calls to {listen} travel in plain text, for everybody in between to read and change: `banyan ca init` makes \
             certificates for TLS, or let a proxy on this machine speak it and listen on 127.0.0.1"
        )
    })
}

impl FileReading<'_> {
    pub(super) fn listen(&mut self, listen: &At<String>) -> Option<SocketAddr> {
        let text = listen.get().replacen("localhost:", "127.0.0.1:", 1);
        let address = text.parse().ok();
        if address.is_none() {
            let flaw = Flaw::new(listen.span(), format!("`listen` is \"{text}\", and must be an IP address with a port"));
            self.flaws.push(flaw.help("for example \"127.0.0.1:7411\", or \"0.0.0.0:7411\" for all interfaces"));
        }
        address
    }

    pub(super) fn allowed_hosts(&mut self, hosts: &[At<String>]) -> Vec<String> {
        for host in hosts {
            let text = host.get();
            if text.is_empty() || text.contains(['/', '*', ' ']) || (text.contains(':') && !text.starts_with('[')) {
                let flaw = Flaw::new(host.span(), format!("`{text}` is not the name of a host"));
                self.flaws.push(flaw.help("write it without scheme, port and path, for example \"gate.example.com\""));
            }
        }
        hosts.iter().map(|host| host.get().to_ascii_lowercase()).collect()
    }

    pub(super) fn open_listen(&mut self, form: &ListenForm, config: &Config) {
        // The section of rooms speaks of its own key.
        if let (Some(listen), Err(open @ OpenListen::Calls(_))) = (&form.listen, check_listen(config.listen, config)) {
            self.flaws.push(Flaw::new(listen.span(), open.message()).help(open.help()).lacking(OpenListen::WANTED));
        }
    }

    /// Refuses a proxy without credentials: without any, whoever is on this machine may come in, and behind a proxy everybody or nobody is.
    pub(super) fn open_proxy(&mut self, form: &ListenForm, config: &Config) {
        let Some(behind) = form.behind_proxy.as_ref().filter(|behind| *behind.get()) else { return };
        if !config.wants_credential() {
            let flaw = Flaw::new(
                behind.span(),
                "behind a proxy nobody counts as being on this machine, and nobody else comes in without a credential",
            );
            self.flaws.push(flaw.help("make a token with `banyan token add NAME`").lacking(OpenListen::WANTED));
        }
    }
}
