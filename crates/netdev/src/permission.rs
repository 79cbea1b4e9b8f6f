//! Permission for actions at a device at the present moment: the rules of the device, its maintenance windows and its freezes. Does not know
//! the record of a change.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use net_proto::fault::{Code, Fault};
use net_proto::role::{CommandRule, DeviceAction, PathRule, Role, RuleEffect, Window};

use equipment::DeviceSettings;

use crate::clock::now;
use crate::freeze::Freezes;

/// Rules at one moment.
pub(crate) struct PresentRole {
    role: Role,
    now: u64,
}

impl PresentRole {
    /// Rules of a device with the windows and freezes of this moment.
    pub(crate) fn new(role: &Role, freezes: &Freezes, settings: &DeviceSettings) -> Result<Self, Fault> {
        let (now, mut role) = (now().wall / 1000, role.clone());
        for window in &mut role.windows {
            set_offset(window, now)?;
        }
        role.freezes = freezes.holding(settings)?.into_iter().map(|(_, freeze)| freeze).collect();
        Ok(Self { role, now })
    }

    pub(crate) fn permit(&self, action: DeviceAction<'_>) -> Result<(), Fault> {
        self.role.permit(action, self.now).map(drop)
    }
}

/// Rules of a device for all callers; the gate has rules for each. The error says which rule can't be read.
pub(crate) fn role(settings: &DeviceSettings) -> Result<Role, String> {
    let rules = |effect: RuleEffect, texts: &[String]| texts.iter().map(|text| CommandRule::new(effect, text)).collect::<Vec<_>>();
    let both = |allow: &[String], deny: &[String]| [rules(RuleEffect::Allow, allow), rules(RuleEffect::Deny, deny)].concat();
    let mut commands = both(&settings.allow_commands, &settings.deny_commands);
    // Lines that others typed, secrets included.
    commands.push(CommandRule::new(RuleEffect::Deny, "show history"));
    let lines = both(&settings.allow_lines, &settings.deny_lines);
    let mut paths = Vec::new();
    for (effect, is_for_edits_only, texts) in [
        (RuleEffect::Allow, false, &settings.allow_paths),
        (RuleEffect::Deny, false, &settings.deny_paths),
        (RuleEffect::Allow, true, &settings.allow_edit_paths),
        (RuleEffect::Deny, true, &settings.deny_edit_paths),
    ] {
        for text in texts {
            paths.push(PathRule::new(effect, is_for_edits_only, text).ok_or_else(|| format!("`{text}` is no path for a rule"))?);
        }
    }
    let windows = settings.windows.iter().map(|text| Window::read(text)).collect::<Result<_, _>>()?;
    Ok(Role { name: settings.name.clone(), is_read_only: settings.read_only, commands, lines, paths, windows, freezes: Vec::new() })
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
    use super::*;

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
