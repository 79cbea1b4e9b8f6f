//! Which keys of one thing have other values in two configurations. What is compared with what is not known here.

use crate::resolved::{
    AuthorityKeys, Budget, Group, Issuer, Limits, Mount, Participant, Profile, Registry, Remote, Room, Rooms, Tls, Token, Transport,
};

/// Where a mount comes from is no difference: it runs the same. How a registered one is reached stands in no file.
pub(super) fn mount_fields(old: &Mount, new: &Mount) -> Vec<&'static str> {
    let Mount {
        name: _,
        transport,
        era,
        sharing,
        timeout,
        timeouts,
        longest,
        start_timeout,
        is_gate,
        include,
        exclude,
        rename,
        tools,
        reached: _,
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
        ("gate", *is_gate != new.is_gate),
        ("include", *include != new.include),
        ("exclude", *exclude != new.exclude),
        ("rename", *rename != new.rename),
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
        ]),
        (Transport::Http(old), Transport::Http(new)) | (Transport::Sse(old), Transport::Sse(new)) => remote_fields(old, new),
        (Transport::Http(old), Transport::Sse(new)) | (Transport::Sse(old), Transport::Http(new)) => {
            let mut keys = vec!["transport"];
            keys.extend(remote_fields(old, new));
            keys
        }
        (Transport::Rooms, Transport::Rooms) => Vec::new(),
        (Transport::Stdio(_) | Transport::Rooms, _) | (Transport::Http(_) | Transport::Sse(_), Transport::Stdio(_) | Transport::Rooms) => {
            vec!["command", "url"]
        }
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

pub(super) fn tls_fields(old: &Tls, new: &Tls) -> Vec<&'static str> {
    let Tls { certificate, key, client_ca, required } = old;
    differing([
        ("certificate", *certificate != new.certificate),
        ("key", *key != new.key),
        ("client_ca", *client_ca != new.client_ca),
        ("clients", *required != new.required),
    ])
}

pub(super) fn registry_fields(old: &Registry, new: &Registry) -> Vec<&'static str> {
    let Registry { principals, hosts, policy, policies, grace, registrations, insecure, trust_gates, tls } = old;
    differing([
        ("principals", *principals != new.principals),
        ("hosts", *hosts != new.hosts),
        ("proof", policy.proof != new.policy.proof),
        ("sticky", policy.sticky != new.policy.sticky),
        ("segment", *policies != new.policies),
        ("grace", *grace != new.grace),
        ("registrations", *registrations != new.registrations),
        ("insecure", *insecure != new.insecure),
        ("trust_gates", *trust_gates != new.trust_gates),
        ("tls", *tls != new.tls),
    ])
}

pub(super) fn rooms_fields(old: &Rooms, new: &Rooms) -> Vec<&'static str> {
    let Rooms { open, capabilities, issuers, secret, query_token, mew, settings, rooms: _, participants: _ } = old;
    differing([
        ("open", *open != new.open),
        ("capabilities", *capabilities != new.capabilities),
        ("issuers", *issuers != new.issuers),
        ("secret", *secret != new.secret),
        ("query_token", *query_token != new.query_token),
        ("mew", *mew != new.mew),
        ("limits", *settings != new.settings),
    ])
}

pub(super) fn room_fields(old: &Room, new: &Room) -> Vec<&'static str> {
    let Room { rule, admins, settings, seats } = old;
    differing([
        ("access", rule.access != new.rule.access),
        ("members", rule.members != new.rule.members),
        ("capabilities", rule.capabilities != new.rule.capabilities),
        ("admins", *admins != new.admins),
        ("seats", seats.servers != new.seats.servers),
        ("mount", seats.is_mounted != new.seats.is_mounted),
        ("limits", *settings != new.settings),
    ])
}

pub(super) fn participant_fields(old: &Participant, new: &Participant) -> Vec<&'static str> {
    let Participant { token, rooms, capabilities } = old;
    differing([("token", *token != new.token), ("rooms", *rooms != new.rooms), ("capabilities", *capabilities != new.capabilities)])
}

pub(super) fn issuer_fields(old: &Issuer, new: &Issuer) -> Vec<&'static str> {
    let Issuer { name: _, issuer, keys, scopes, profile } = old;
    differing([
        ("issuer", *issuer != new.issuer),
        ("keys", *keys != new.keys),
        ("scopes", *scopes != new.scopes),
        ("profile", *profile != new.profile),
    ])
}

pub(super) fn budget_fields(old: &Budget, new: &Budget) -> Vec<&'static str> {
    let Budget { name: _, principals, per_session, limits, idle } = old;
    differing([
        ("principals", *principals != new.principals),
        ("per", *per_session != new.per_session),
        ("max_calls_per_minute", limits.calls_per_minute != new.limits.calls_per_minute),
        ("max_mutable_calls_per_session", limits.mutable_calls_per_session != new.limits.mutable_calls_per_session),
        ("max_cost_units_per_session", limits.cost_units_per_session != new.limits.cost_units_per_session),
        ("idle", *idle != new.idle),
    ])
}

pub(super) fn group_fields(old: &Group, new: &Group) -> Vec<&'static str> {
    differing([("members", old.members != new.members)])
}

pub(super) fn authority_fields(old: &AuthorityKeys, new: &AuthorityKeys) -> Vec<&'static str> {
    let AuthorityKeys { name: _, keys, names } = old;
    differing([("keys", *keys != new.keys), ("names", *names != new.names)])
}

pub(super) fn profile_fields(old: &Profile, new: &Profile) -> Vec<&'static str> {
    let Profile { name: _, clients, include, exclude, rename, names, search } = old;
    differing([
        ("clients", *clients != new.clients),
        ("include", *include != new.include),
        ("exclude", *exclude != new.exclude),
        ("rename", *rename != new.rename),
        ("names", *names != new.names),
        ("search", *search != new.search),
    ])
}

pub(super) fn token_fields(old: &Token, new: &Token) -> Vec<&'static str> {
    let Token { name: _, sha256, profile, metrics } = old;
    differing([("sha256", *sha256 != new.sha256), ("profile", *profile != new.profile), ("metrics", *metrics != new.metrics)])
}

pub(super) fn limit_fields(old: &Limits, new: &Limits) -> Vec<&'static str> {
    let Limits {
        request_bytes,
        response_bytes,
        calls,
        calls_per_mount,
        wait,
        sessions,
        session_idle,
        tools_per_mount,
        share,
        connections,
        connections_per_address,
        body_bytes,
        stream_bytes,
        parked,
        listeners,
        subscriptions,
        question,
    } = old;
    differing([
        ("request_size", *request_bytes != new.request_bytes),
        ("response_size", *response_bytes != new.response_bytes),
        ("calls", *calls != new.calls),
        ("calls_per_mount", *calls_per_mount != new.calls_per_mount),
        ("wait", *wait != new.wait),
        ("sessions", *sessions != new.sessions),
        ("session_idle", *session_idle != new.session_idle),
        ("tools_per_mount", *tools_per_mount != new.tools_per_mount),
        ("share", *share != new.share),
        ("connections", *connections != new.connections),
        ("connections_per_address", *connections_per_address != new.connections_per_address),
        ("bodies", *body_bytes != new.body_bytes),
        ("streams", *stream_bytes != new.stream_bytes),
        ("parked", *parked != new.parked),
        ("listeners", *listeners != new.listeners),
        ("subscriptions", *subscriptions != new.subscriptions),
        ("question", *question != new.question),
    ])
}

fn differing<const N: usize>(keys: [(&'static str, bool); N]) -> Vec<&'static str> {
    keys.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}
