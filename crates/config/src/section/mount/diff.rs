//! Differences of servers, by name. Reaches none.

use crate::diff::{self, Change, differing};
use crate::resolved::{Config, Mount, Remote, Transport};

/// Lists the differences of the section.
pub(super) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    diff::named("mount", by_name(old), by_name(new), mount_fields)
}

fn by_name(config: &Config) -> impl Iterator<Item = (&str, &Mount)> {
    config.mounts.iter().map(|(name, mount)| (name.as_str(), &**mount))
}

/// Compares two mounts. The origin is no difference, and `reached` of registered servers stands in no file.
fn mount_fields(old: &Mount, new: &Mount) -> Vec<&'static str> {
    let Mount {
        name: _,
        transport,
        era,
        sharing,
        timeout,
        timeouts,
        longest,
        start_timeout,
        grace,
        list_ttl,
        is_gate,
        include,
        exclude,
        rename,
        tools,
        reached: _,
        stands_for,
        is_told_callers,
        origin: _,
    } = old;
    let mut keys = transport_fields(transport, &new.transport);
    keys.extend(differing([
        ("era", *era != new.era),
        ("sharing", *sharing != new.sharing),
        ("timeout", (*timeout, timeouts) != (new.timeout, &new.timeouts)),
        ("longest", *longest != new.longest),
        ("tools", *tools != new.tools),
        ("start_timeout", *start_timeout != new.start_timeout),
        ("grace", *grace != new.grace),
        ("list_ttl", *list_ttl != new.list_ttl),
        ("gate", *is_gate != new.is_gate),
        ("include", *include != new.include),
        ("exclude", *exclude != new.exclude),
        ("rename", *rename != new.rename),
        ("devices", (stands_for, *is_told_callers) != (&new.stands_for, new.is_told_callers)),
    ]));
    keys
}

fn transport_fields(old: &Transport, new: &Transport) -> Vec<&'static str> {
    match (old, new) {
        (Transport::Stdio(old), Transport::Stdio(new)) => differing([
            ("command", old.command != new.command),
            ("args", old.args != new.args),
            ("env", old.env != new.env),
            ("pass_env", old.pass_env != new.pass_env),
            ("cwd", old.cwd != new.cwd),
            ("shared", old.shared != new.shared),
        ]),
        (Transport::Http(old), Transport::Http(new)) | (Transport::Sse(old), Transport::Sse(new)) => remote_fields(old, new),
        (Transport::Http(old), Transport::Sse(new)) | (Transport::Sse(old), Transport::Http(new)) => {
            let mut keys = vec!["transport"];
            keys.extend(remote_fields(old, new));
            keys
        }
        (Transport::Family(old), Transport::Family(new)) => new.differing(old),
        (Transport::Family(family), _) | (_, Transport::Family(family)) => vec![family.family()],
        (Transport::Stdio(_), _) | (Transport::Http(_) | Transport::Sse(_), Transport::Stdio(_)) => vec!["command", "url"],
    }
}

fn remote_fields(old: &Remote, new: &Remote) -> Vec<&'static str> {
    let Remote { url, headers, oauth, tls, insecure } = old;
    differing([
        ("url", *url != new.url),
        ("headers", *headers != new.headers),
        ("oauth", *oauth != new.oauth),
        ("tls", *tls != new.tls),
        ("insecure", *insecure != new.insecure),
    ])
}
