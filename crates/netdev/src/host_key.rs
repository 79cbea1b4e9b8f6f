//! The host key of a device that nobody knows yet. Does not accept the key.

use equipment::Backend;
use net_proto::fault::Fault;

use crate::login::{self, with_port};
use crate::{netconf, ssh};

/// Fingerprint of the host key that a device at `address` shows, as `ssh-keygen -l` shows it. Nobody logs in.
///
/// # Errors
/// No SSH server answers there.
pub async fn shown_host_key(address: &str, backend: Backend) -> Result<String, Fault> {
    login::shown_key(&with_port(address, if backend == Backend::Netconf { netconf::PORT } else { ssh::PORT })).await
}
