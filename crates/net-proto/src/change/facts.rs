//! Scripts that read what a machine behind a shell knows of itself and of its FRR: load, memory, counters, files, logs and crash reports. Change
//! nothing there.

use super::job::{FrrPrograms, head, quoted};
use crate::machine::{LONGEST_REPORT, MOST_REPORTS};

/// Directory of crash reports, made by FRR.
pub const CRASHES: &str = "/var/tmp/frr";

impl FrrPrograms {
    /// Path of the configuration that FRR starts with.
    pub fn startup_file(&self) -> String {
        format!("/etc/frr/{}frr.conf", self.below())
    }

    /// Path of the file with the process of `zebra`, in whose network namespace the interfaces are.
    pub fn zebra_file(&self) -> String {
        format!("/run/frr/{}zebra.pid", self.below())
    }

    /// Script that shows the processors, and looks at their load twice, with a second between.
    pub fn load(&self) -> String {
        format!("{}cat /proc/cpuinfo\ncat /proc/stat && sleep 1 && cat /proc/stat\n", head())
    }

    /// Script that shows the main memory.
    pub fn memory(&self) -> String {
        format!("{}cat /proc/meminfo\n", head())
    }

    /// Script that shows the counters of the interfaces of FRR; without a `zebra`, nothing.
    pub fn counters(&self) -> String {
        let file = quoted(&self.zebra_file());
        format!(
            "{}P=$(cat {file} 2>/dev/null)\n[ \"$(cat \"/proc/$P/comm\" 2>/dev/null)\" = zebra ] && cat \"/proc/$P/net/dev\"\n:\n",
            head()
        )
    }

    /// Script that shows at most `most` bytes of the configuration that FRR starts with.
    pub fn startup(&self, most: u64) -> String {
        format!("{}head -c {most} {}\n", head(), quoted(&self.startup_file()))
    }

    /// Script that shows the last `lines` of a file, out of its last `most` bytes.
    pub fn last_lines(&self, path: &str, lines: usize, most: u64) -> String {
        let path = quoted(path);
        // A pipe would hide that there is no such file.
        let unread = "echo \"the login can't read this file\" >&2; exit 1";
        format!("{}[ -r {path} ] || {{ {unread}; }}\ntail -c {most} {path} | tail -n {lines}\n", head())
    }

    /// Script that shows the newest crash reports of a daemon: `=` and the name of each, then its lines behind a `>`.
    pub fn crashes(&self, daemon: &str) -> String {
        let daemon = quoted(daemon);
        // Others may write to the directory too, so no link is followed.
        format!(
            "{}cd {CRASHES} 2>/dev/null || exit 0\nN={daemon}\nls -1dt -- \"$N\".* 2>/dev/null | head -n 64 | {{ n=0\nwhile read -r d; do\n\
             case \"${{d#\"$N\".}}\" in ''|*[!0-9]*) continue;; esac\n[ -d \"$d\" ] && [ ! -L \"$d\" ] && [ -f \"$d/crashlog\" ] || continue\n\
             n=$((n + 1)); [ \"$n\" -le {MOST_REPORTS} ] || break\nprintf '=%s\\n' \"$d\"\n\
             dd if=\"$d/crashlog\" iflag=nofollow,fullblock bs={LONGEST_REPORT} count=1 2>/dev/null | sed 's/^/>/'\necho\ndone; }}\n:\n",
            head()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_03_scripts_name_files_of_their_path_space() {
        let (plain, spaced) = (FrrPrograms::new("/usr/bin", None), FrrPrograms::new("/usr/bin", Some("r'1")));
        assert_eq!(plain.startup_file(), "/etc/frr/frr.conf");
        assert!(spaced.startup(9).ends_with("head -c 9 '/etc/frr/r'\\''1/frr.conf'\n"));
        assert!(spaced.counters().contains("cat '/run/frr/r'\\''1/zebra.pid'"));
        assert!(plain.last_lines("/a b", 5, 10).contains("tail -c 10 '/a b' | tail -n 5\n"));
        assert!(plain.crashes("a;b").contains("N='a;b'\n"));
    }
}
