//! Texts of services: a systemd unit for a user, for a machine, and a launchd agent. Writes no file and starts nothing.

use std::fmt::Write as _;
use std::path::Path;

/// First words of every text, by which a service of this program is known.
pub(crate) const MARK: &str = "Written by `banyan service install`";

/// Variables of the installing shell that a gate needs for its servers, where they are set: a service begins with hardly any.
pub(crate) const KEPT: [&str; 16] = [
    "PATH",
    "LANG",
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// Checks if a value is the address of a proxy with a user's name or password. No file of a service holds such an address.
pub(crate) fn holds_credentials(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.ends_with("_PROXY") && name != "NO_PROXY" && value.contains('@')
}

/// Restrictions that no server of a user misses.
const USER_HARDENING: &str = "\
UMask=0077
LimitNOFILE=65536
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
";

/// Restrictions of a machine's gate and of every server that the gate starts.
const SYSTEM_HARDENING: &str = "\
UMask=0077
LimitNOFILE=65536
StateDirectory=banyan
StateDirectoryMode=0700
RuntimeDirectory=banyan
RuntimeDirectoryMode=0700
CapabilityBoundingSet=
LockPersonality=yes
NoNewPrivileges=yes
PrivateDevices=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=strict
RemoveIPC=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
";

/// The gate that a service starts.
pub(crate) struct ServedGate<'a> {
    pub(crate) program: &'a Path,
    pub(crate) config: &'a Path,
    /// Variables, by name.
    pub(crate) env: &'a [(String, String)],
}

impl ServedGate<'_> {
    /// The systemd unit of a user.
    pub(crate) fn user_unit(&self) -> String {
        self.unit("", USER_HARDENING, "default.target")
    }

    /// The systemd unit of the machine: the gate runs as the user `banyan`.
    pub(crate) fn system_unit(&self) -> String {
        let network = "After=network-online.target\nWants=network-online.target\n";
        let service = format!("User=banyan\nGroup=banyan\nWorkingDirectory=/var/lib/banyan\n{SYSTEM_HARDENING}");
        self.unit(network, &service, "multi-user.target")
    }

    fn unit(&self, unit: &str, service: &str, target: &str) -> String {
        let mut env = String::new();
        for (name, value) in self.env {
            _ = writeln!(env, "Environment={}", quoted(&format!("{name}={value}"), false));
        }
        format!(
            "# {MARK}; `banyan service uninstall` removes the file.\n\
             # Settings of your own belong into a drop-in: `systemctl edit banyan`.\n\
             [Unit]\n\
             Description=Banyan, one gate in front of MCP servers\n\
             Documentation=man:banyan(1)\n\
             {unit}\n\
             [Service]\n\
             Type=notify\n\
             ExecStart={} up --config {}\n\
             Restart=on-failure\n\
             RestartSec=5\n\
             KillMode=mixed\n\
             TimeoutStopSec=30\n\
             {env}EnvironmentFile=-%E/banyan/environment\n\
             {service}\n\
             [Install]\n\
             WantedBy={target}\n",
            // systemd takes the program as written, and variables in the words behind the program only.
            quoted(&self.program.display().to_string(), false),
            quoted(&self.config.display().to_string(), true),
        )
    }

    /// The launchd agent of a user. `log`: the file for what the gate prints.
    pub(crate) fn agent(&self, log: &Path) -> String {
        let program = self.program.display().to_string();
        let config = self.config.display().to_string();
        let words = [program.as_str(), "up", "--config", config.as_str()];
        let words: String = words.iter().map(|word| format!("    <string>{}</string>\n", escaped(word))).collect();
        let pair =
            |(name, value): &(String, String)| format!("    <key>{}</key>\n    <string>{}</string>\n", escaped(name), escaped(value));
        let env: String = self.env.iter().map(pair).collect();
        let log = escaped(&log.display().to_string());
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <!-- {MARK}; `banyan service uninstall` removes the file. -->\n\
             <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
             <plist version=\"1.0\">\n\
             <dict>\n\
             \x20 <key>Label</key>\n\
             \x20 <string>{LABEL}</string>\n\
             \x20 <key>ProgramArguments</key>\n\
             \x20 <array>\n{words}  </array>\n\
             \x20 <key>EnvironmentVariables</key>\n\
             \x20 <dict>\n{env}  </dict>\n\
             \x20 <key>RunAtLoad</key>\n\
             \x20 <true/>\n\
             \x20 <key>KeepAlive</key>\n\
             \x20 <dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n\
             \x20 <key>StandardOutPath</key>\n\
             \x20 <string>{log}</string>\n\
             \x20 <key>StandardErrorPath</key>\n\
             \x20 <string>{log}</string>\n\
             </dict>\n\
             </plist>\n"
        )
    }
}

/// Name of the launchd agent.
pub(crate) const LABEL: &str = "dev.banyan.gate";

/// Quotes a word for a unit, where `%` begins a specifier and, on a command line, `$` a variable.
pub(crate) fn quoted(word: &str, is_command: bool) -> String {
    let mut text = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('\n', "\\n");
    if is_command {
        text = text.replace('$', "$$");
    }
    format!("\"{text}\"")
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_has_a_meaning_of_its_own() {
        let env = [("PATH".to_owned(), "/a b:/50%\"\\".to_owned())];
        let gate = ServedGate { program: Path::new("/opt/my $tools/banyan"), config: Path::new("/etc/$a&b/<banyan>.toml"), env: &env };
        let unit = gate.user_unit();
        assert!(unit.contains("ExecStart=\"/opt/my $tools/banyan\" up --config \"/etc/$$a&b/<banyan>.toml\"\n"), "{unit}");
        assert!(unit.contains("Environment=\"PATH=/a b:/50%%\\\"\\\\\"\n"), "{unit}");
        let agent = gate.agent(Path::new("/log"));
        assert!(agent.contains("<string>/etc/$a&amp;b/&lt;banyan&gt;.toml</string>"), "{agent}");
    }

    #[test]
    fn the_gate_of_a_machine_may_write_its_state() {
        let unit = ServedGate { program: Path::new("/b"), config: Path::new("/c"), env: &[] }.system_unit();
        for line in ["User=banyan", "ProtectSystem=strict", "ProtectHome=yes", "NoNewPrivileges=yes", "StateDirectory=banyan"] {
            assert!(unit.lines().any(|one| one == line), "{line}");
        }
    }
}
