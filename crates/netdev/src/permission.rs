//! Permission for actions at a device at the present moment: the rules of the device, its maintenance windows and its freezes. Does not know
//! the record of a change.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use net_proto::change::owner_in_words;
use net_proto::fault::{Code, Fault};
use net_proto::role::{CommandRule, DeviceAction, PathRule, Role, RuleEffect, Window};
use net_proto::snmp::whole_path;

use equipment::{Backend, DeviceSettings, RoleSettings};

use crate::caller::CallerIdentity;
use crate::clock::now;
use crate::freeze::Freezes;

/// Rules of a device for everybody, and roles for some callers.
#[derive(Clone, Debug)]
pub(crate) struct DeviceRules {
    everybody: Role,
    roles: Arc<Vec<(RoleSettings, Role)>>,
    caller: Option<Arc<CallerIdentity>>,
}

impl DeviceRules {
    /// Reads the rules of a device. The error names the bad rule.
    pub(crate) fn new(settings: &DeviceSettings) -> Result<Self, String> {
        let DeviceSettings { name, read_only, windows, .. } = settings;
        let own = RoleSettings {
            callers: Vec::new(),
            groups: Vec::new(),
            read_only: *read_only,
            allow_commands: settings.allow_commands.clone(),
            deny_commands: settings.deny_commands.clone(),
            allow_lines: settings.allow_lines.clone(),
            deny_lines: settings.deny_lines.clone(),
            allow_paths: settings.allow_paths.clone(),
            deny_paths: settings.deny_paths.clone(),
            allow_edit_paths: settings.allow_edit_paths.clone(),
            deny_edit_paths: settings.deny_edit_paths.clone(),
        };
        let backend = settings.backend;
        let mut everybody = role(name, &own, backend)?;
        // Lines that others typed, secrets included.
        everybody.commands.push(CommandRule::new(RuleEffect::Deny, "show history"));
        everybody.windows = windows.iter().map(|text| Window::read(text)).collect::<Result<_, _>>()?;
        let named =
            |rules: &RoleSettings| Ok::<_, String>((rules.clone(), role(&format!("{name} for {}", description(rules)), rules, backend)?));
        let roles = settings.roles.iter().map(named).collect::<Result<_, _>>()?;
        Ok(Self { everybody, roles: Arc::new(roles), caller: None })
    }

    /// The same rules for a known caller.
    pub(crate) fn for_caller(&self, caller: CallerIdentity) -> Self {
        Self { caller: Some(Arc::new(caller)), ..self.clone() }
    }

    /// Do roles tell callers apart?
    pub(crate) fn has_roles(&self) -> bool {
        !self.roles.is_empty()
    }

    /// Do rules on lines hold for this caller?
    pub(crate) fn has_lines(&self) -> bool {
        !self.everybody.lines.is_empty() || self.holding().iter().any(|role| !role.lines.is_empty())
    }

    /// Do rules on paths hold for this caller?
    pub(crate) fn has_paths(&self) -> bool {
        !self.everybody.paths.is_empty() || self.holding().iter().any(|role| !role.paths.is_empty())
    }

    /// Roles beside the rules for everybody: the first with the name of the caller; for an unknown caller, all of them.
    fn holding(&self) -> Vec<&Role> {
        match &self.caller {
            None => self.roles.iter().map(|(_, role)| role).collect(),
            Some(caller) => self.roles.iter().find(|(names, _)| caller.is_named(names)).map(|(_, role)| role).into_iter().collect(),
        }
    }

    /// The rules with the windows and freezes of this moment.
    pub(crate) fn at_present(&self, freezes: &Freezes, settings: &DeviceSettings) -> Result<PresentRole, Fault> {
        let (now, mut everybody) = (now().wall / 1000, self.everybody.clone());
        for window in &mut everybody.windows {
            set_offset(window, now)?;
        }
        everybody.freezes = freezes.holding(settings)?.into_iter().map(|(_, freeze)| freeze).collect();
        let roles: Vec<Role> = self.holding().into_iter().cloned().collect();
        let stranger = self.caller.as_ref().filter(|_| self.has_roles() && roles.is_empty());
        if let Some(stranger) = stranger {
            let detail = format!(
                "no role of the device `{}` names {}: its section in banyan.toml says who does what",
                settings.name,
                owner_in_words(&stranger.qualified())
            );
            return Err(Fault::new(Code::AccessDenied, detail));
        }
        Ok(PresentRole { roles: std::iter::once(everybody).chain(roles).collect(), now })
    }
}

/// Rules at one moment, all of which hold.
pub(crate) struct PresentRole {
    roles: Vec<Role>,
    now: u64,
}

impl PresentRole {
    pub(crate) fn permit(&self, action: DeviceAction<'_>) -> Result<(), Fault> {
        self.roles.iter().try_for_each(|role| role.permit(action, self.now).map(drop))
    }
}

fn description(rules: &RoleSettings) -> String {
    rules.callers.iter().chain(&rules.groups).map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn role(name: &str, settings: &RoleSettings, backend: Backend) -> Result<Role, String> {
    let rules = |effect: RuleEffect, texts: &[String]| texts.iter().map(|text| CommandRule::new(effect, text)).collect::<Vec<_>>();
    let both = |allow: &[String], deny: &[String]| [rules(RuleEffect::Allow, allow), rules(RuleEffect::Deny, deny)].concat();
    let mut paths = Vec::new();
    for (effect, is_for_edits_only, texts) in [
        (RuleEffect::Allow, false, &settings.allow_paths),
        (RuleEffect::Deny, false, &settings.deny_paths),
        (RuleEffect::Allow, true, &settings.allow_edit_paths),
        (RuleEffect::Deny, true, &settings.deny_edit_paths),
    ] {
        for text in texts {
            let whole = if backend == Backend::Snmp { whole_path(text) } else { text.into() };
            paths.push(PathRule::new(effect, is_for_edits_only, &whole).ok_or_else(|| format!("`{text}` is no path for a rule"))?);
        }
    }
    Ok(Role {
        name: name.to_owned(),
        is_read_only: settings.read_only,
        commands: both(&settings.allow_commands, &settings.deny_commands),
        lines: both(&settings.allow_lines, &settings.deny_lines),
        paths,
        lacks_paths: matches!(backend, Backend::Ovs | Backend::Bird),
        windows: Vec::new(),
        freezes: Vec::new(),
    })
}

/// Gives a window the offset that its zone has at `now`, in seconds since 1970.
fn set_offset(window: &mut Window, now: u64) -> Result<(), Fault> {
    let unknown =
        |why: String| Fault::new(Code::AccessDenied, format!("the time zone `{}` is not known, so nothing is changed: {why}", window.zone));
    let zone = TimeZone::get(&window.zone).map_err(|error| unknown(error.to_string()))?;
    let at = |seconds: u64| i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    let moment = at(now).ok_or_else(|| unknown("the clock is beyond all dates".to_owned()))?;
    window.offset = i16::try_from(zone.to_offset(moment).seconds() / 60).unwrap_or(0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn permitted(rules: &DeviceRules, caller: Option<CallerIdentity>, action: DeviceAction<'_>) -> Result<(), String> {
        let dir = tempfile::tempdir().unwrap();
        let rules = caller.map_or_else(|| rules.clone(), |caller| rules.for_caller(caller));
        let present = rules.at_present(&Freezes::new(dir.path()), &DeviceSettings::new("r1"));
        present.and_then(|present| present.permit(action)).map_err(|fault| fault.detail)
    }

    #[test]
    fn nm_12_the_first_role_of_a_caller_holds() {
        let role = |value| serde_json::from_value::<RoleSettings>(value).unwrap();
        let roles = vec![
            role(json!({ "callers": ["ada"], "deny_paths": ["/system/radius"] })),
            role(json!({ "groups": ["noc"], "read_only": true })),
            role(json!({ "callers": ["n*"], "allow_paths": ["/interfaces"], "read_only": true })),
        ];
        let settings = DeviceSettings { roles, deny_paths: vec!["/nacm".into()], ..DeviceSettings::new("r1") };
        let rules = DeviceRules::new(&settings).unwrap();
        let told = |name: &str, kind: &str, group: &str| {
            Some(serde_json::from_value::<CallerIdentity>(json!({ "name": name, "kind": kind, "groups": [group], "roles": [] })).unwrap())
        };
        let (ada, bob, nina) = (|| told("ada", "token", "noc"), || told("bob", "token", "noc"), || told("nina", "issuer", "x"));
        let (edit, radius, system) =
            (DeviceAction::EditPath("/interfaces"), DeviceAction::ReadPath("/system/radius"), DeviceAction::ReadPath("/system/x"));
        assert_eq!(permitted(&rules, ada(), edit), Ok(()));
        assert!(permitted(&rules, ada(), radius).unwrap_err().contains("ada"));
        assert_eq!(permitted(&rules, bob(), radius), Ok(()));
        assert!(permitted(&rules, bob(), edit).unwrap_err().contains("read-only"));
        assert!(permitted(&rules, nina(), system).is_err() && permitted(&rules, nina(), DeviceAction::ReadPath("/interfaces")).is_ok());
        for who in [ada(), bob(), nina()] {
            assert!(permitted(&rules, who, DeviceAction::ReadPath("/nacm")).is_err());
        }
        // Whoever may take any name in a room is not the holder of a token of that name.
        for stranger in [told("ada", "participant", "x"), told("eve", "token", "x"), told("ada", "parent", "x")] {
            assert!(permitted(&rules, stranger, DeviceAction::ReadPath("/interfaces")).unwrap_err().contains("no role"));
        }
        // Whom nobody vouches for, all roles hold.
        assert!(
            permitted(&rules, None, edit).is_err() && permitted(&rules, None, radius).is_err() && permitted(&rules, None, system).is_err()
        );
        assert_eq!(permitted(&rules, None, DeviceAction::ReadPath("/interfaces")), Ok(()));
    }

    #[test]
    fn nm_12_a_role_names_gates_above_by_host() {
        let roles = vec![serde_json::from_value::<RoleSettings>(json!({ "callers": ["parent:root.example.com"] })).unwrap()];
        let rules = DeviceRules::new(&DeviceSettings { roles, ..DeviceSettings::new("r1") }).unwrap();
        let caller =
            |name: &str, kind: &str| Some(serde_json::from_value::<CallerIdentity>(json!({ "name": name, "kind": kind })).unwrap());
        let read = DeviceAction::ReadPath("/interfaces");
        assert_eq!(permitted(&rules, caller("parent root.example.com", "parent"), read), Ok(()));
        for (name, kind) in [("parent other.example.com", "parent"), ("parent root.example.com", "token"), ("root.example.com", "token")] {
            assert!(permitted(&rules, caller(name, kind), read).unwrap_err().contains("no role"), "{name} {kind}");
        }
    }

    #[test]
    fn nm_12_path_rules_without_paths_refuse_all_edits() {
        let show = net_proto::dialect::Dialect::named("ovs").unwrap().command("show vlan").unwrap();
        for backend in [Backend::Ovs, Backend::Bird] {
            let paths = || vec!["/interfaces".to_owned()];
            let edits = DeviceSettings { backend, deny_edit_paths: paths(), ..DeviceSettings::new("s") };
            let all = DeviceSettings { backend, allow_paths: paths(), ..DeviceSettings::new("s") };
            for (settings, is_read) in [(edits, true), (all, false)] {
                let rules = DeviceRules::new(&settings).unwrap();
                let told = permitted(&rules, None, DeviceAction::ConfigLine("tag 3")).unwrap_err();
                assert!(told.contains("deny_lines"), "{told}");
                assert!(permitted(&rules, None, DeviceAction::Commit).is_err());
                assert_eq!(permitted(&rules, None, DeviceAction::Command(&show)).is_ok(), is_read);
                assert_eq!(permitted(&rules, None, DeviceAction::Confirm), Ok(()));
            }
        }
    }

    #[test]
    fn nm_12_a_window_keeps_its_local_time_all_year() {
        let mut window = Window::read("Sat 02:00-04:00 Europe/Vienna").unwrap();
        for (second, offset) in [(1_795_903_200, 60), (1_784_800_000, 120)] {
            set_offset(&mut window, second).unwrap();
            assert_eq!(window.offset, offset);
        }
        window.zone = "Mars/Olympus".to_owned();
        assert_eq!(set_offset(&mut window, 0).unwrap_err().code, Code::AccessDenied);
    }
}
