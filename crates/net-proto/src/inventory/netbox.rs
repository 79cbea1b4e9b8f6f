//! Devices of NetBox, as its API gives them (JSON) or as its page exports them (CSV). NetBox is not asked.

use serde_json::{Map, Value};

use super::{Inventory, InventoryDevice, InventoryError, InventoryFile, InventoryKind, dialect_of, text};

/// Columns of the export, in lower case: of the page and of its templates.
const NAME: [&str; 2] = ["name", "device"];
const ADDRESS: [&str; 6] = ["primary ip", "primary_ip", "ip address", "ipv4 address", "primary_ip4", "primary_ip6"];
const PLATFORM: [&str; 1] = ["platform"];
const GROUPS: [&str; 4] = ["site", "role", "device role", "device_role"];

/// Checks that the first line names columns of the export.
pub(super) fn is_csv(text: &str) -> bool {
    let head = text.lines().next().unwrap_or_default().to_lowercase();
    let columns: Vec<&str> = head.split(',').map(|column| column.trim_matches(['"', ' ', '\u{feff}'])).collect();
    columns.len() > 1 && columns.iter().any(|column| NAME.contains(column)) && columns.iter().any(|column| ADDRESS.contains(column))
}

pub(super) fn read_csv(file: InventoryFile<'_>) -> Result<Inventory, InventoryError> {
    let syntax = |error: csv::Error| InventoryError::Syntax { file: file.name.to_owned(), reason: error.to_string() };
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(file.text.trim_start_matches('\u{feff}').as_bytes());
    let head: Vec<String> = reader.headers().map_err(syntax)?.iter().map(|column| column.trim().to_lowercase()).collect();
    let column = |names: &[&str]| names.iter().find_map(|name| head.iter().position(|column| column == name));
    let (Some(name), address, platform) = (column(&NAME), column(&ADDRESS), column(&PLATFORM)) else {
        return Err(InventoryError::Unknown(file.name.to_owned()));
    };
    let groups: Vec<usize> = GROUPS.iter().filter_map(|group| head.iter().position(|column| column == group)).collect();
    let mut found = DeviceRows::default();
    for row in reader.records() {
        let row = row.map_err(syntax)?;
        let cell = |at: usize| row.get(at).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let groups = groups.iter().filter_map(|at| cell(*at)).collect();
        found.add(cell(name), address.and_then(cell), platform.and_then(cell), groups);
    }
    Ok(found.into_inventory())
}

/// Reads the devices of an answer; `None`: these are no devices.
pub(super) fn read_json(devices: &[Value]) -> Option<Inventory> {
    let mut found = DeviceRows::default();
    for device in devices {
        let device = device.as_object()?;
        if !device.contains_key("name") {
            return None;
        }
        let address = ["primary_ip", "primary_ip4", "primary_ip6"].iter().find_map(|name| named(device, name, &["address"]));
        let platform = named(device, "platform", &["slug", "name"]);
        let groups = ["site", "role", "device_role"].iter().filter_map(|name| named(device, name, &["slug", "name"])).collect();
        found.add(text(device, "name"), address, platform, groups);
    }
    Some(found.into_inventory())
}

/// A member that is a text, or an object with one of these members.
fn named(device: &Map<String, Value>, name: &str, members: &[&str]) -> Option<String> {
    let below = device.get(name).and_then(Value::as_object);
    text(device, name).or_else(|| members.iter().find_map(|member| text(below?, member)))
}

#[derive(Default)]
struct DeviceRows {
    devices: Vec<InventoryDevice>,
    without_name: usize,
    without_address: usize,
}

impl DeviceRows {
    fn add(&mut self, name: Option<String>, address: Option<String>, platform: Option<String>, mut groups: Vec<String>) {
        let Some(name) = name else {
            self.without_name += 1;
            return;
        };
        // NetBox gives addresses with the length of their network.
        let address = address.map(|address| address.split('/').next().unwrap_or_default().trim().to_owned());
        let Some(address) = address.filter(|address| !address.is_empty()) else {
            self.without_address += 1;
            return;
        };
        groups.sort();
        groups.dedup();
        let dialect = platform.as_deref().and_then(dialect_of);
        self.devices.push(InventoryDevice { name, address, dialect, platform, groups, ..InventoryDevice::default() });
    }

    fn into_inventory(self) -> Inventory {
        let note = |count: usize, what: &str| (count > 0).then(|| format!("{count} devices without {what} were left out."));
        let notes = [note(self.without_name, "a name"), note(self.without_address, "a primary address")];
        Inventory { kind: InventoryKind::NetBox, devices: self.devices, notes: notes.into_iter().flatten().collect() }
    }
}
