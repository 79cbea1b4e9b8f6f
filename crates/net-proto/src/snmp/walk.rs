//! Walks over columns of tables by GETBULK, several at a time, bounded in values and bytes. A device that answers in circles is found out. Sends nothing.

use std::collections::BTreeMap;

use super::{Oid, Pdu, PduKind, SnmpValue};
use crate::fault::{Fault, SnmpRequest, Trouble};

/// Bindings that are asked for at a time, so that an answer usually fits a packet.
const AT_ONCE: u32 = 50;
/// Values and bytes of a walk.
const MOST_VALUES: usize = 500_000;
const MOST_BYTES: usize = 32 << 20;
/// Status of an answer that would be too big.
const TOO_BIG: u32 = 1;

#[derive(Debug)]
struct Column {
    root: Oid,
    last: Oid,
    values: BTreeMap<Oid, SnmpValue>,
    is_whole: bool,
}

/// A walk under way.
#[derive(Debug)]
pub struct TableWalk {
    columns: Vec<Column>,
    repeats: u32,
    values: usize,
    bytes: usize,
    most_bytes: usize,
}

impl TableWalk {
    /// Begins below these identifiers.
    pub fn new(roots: impl IntoIterator<Item = Oid>) -> Self {
        let column = |root: Oid| Column { last: root.clone(), root, values: BTreeMap::new(), is_whole: false };
        let columns: Vec<Column> = roots.into_iter().map(column).collect();
        let repeats = (AT_ONCE / u32::try_from(columns.len().max(1)).unwrap_or(AT_ONCE)).max(1);
        Self { columns, repeats, values: 0, bytes: 0, most_bytes: MOST_BYTES }
    }

    /// The same walk, with values of at most `bytes`.
    #[must_use]
    pub fn within(self, bytes: usize) -> Self {
        Self { most_bytes: self.most_bytes.min(bytes), ..self }
    }

    /// Values so far.
    pub fn count(&self) -> usize {
        self.values
    }

    /// Bytes of the values so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next request; `None`: the walk is at its end.
    pub fn request(&self) -> Option<Pdu> {
        let asked: Vec<Oid> = self.columns.iter().filter(|column| !column.is_whole).map(|column| column.last.clone()).collect();
        (!asked.is_empty()).then(|| Pdu { index: self.repeats, ..Pdu::asking(PduKind::GetBulk, asked) })
    }

    /// Hears the answer to the last request.
    ///
    /// # Errors
    /// The device refuses, answers in circles, or has no end.
    pub fn hear(&mut self, answer: Pdu) -> Result<(), Fault> {
        if answer.status == TOO_BIG && self.repeats > 1 {
            self.repeats /= 2;
            return Ok(());
        }
        let first = self.columns.iter().find(|column| !column.is_whole).map(|column| column.last.to_string());
        if let Some(fault) = Fault::from_snmp(SnmpRequest::Get, answer.status, first.as_deref().unwrap_or_default()) {
            return Err(fault);
        }
        if answer.bindings.is_empty() {
            return Err(Trouble::Garbled { reason: "an answer without values".to_owned() }.into());
        }
        let asked: Vec<usize> = (0..self.columns.len()).filter(|at| !self.columns[*at].is_whole).collect();
        for (at, (oid, value)) in answer.bindings.into_iter().enumerate() {
            let Some(column) = asked.get(at % asked.len().max(1)).and_then(|at| self.columns.get_mut(*at)) else { break };
            if column.is_whole {
                continue;
            }
            if value == SnmpValue::End || oid.below(&column.root).is_none() {
                column.is_whole = true;
                continue;
            }
            if oid <= column.last {
                let reason = format!("after {} comes {oid}, which is no further", column.last);
                return Err(Trouble::Garbled { reason }.into());
            }
            self.values += 1;
            self.bytes += size(&oid, &value);
            if self.values > MOST_VALUES || self.bytes > self.most_bytes {
                return Err(Trouble::TooLong { limit: self.most_bytes }.into());
            }
            column.last = oid.clone();
            column.values.insert(oid, value);
        }
        Ok(())
    }

    /// Values of each column, by the whole identifier.
    pub fn values(self) -> Vec<BTreeMap<Oid, SnmpValue>> {
        self.columns.into_iter().map(|column| column.values).collect()
    }
}

fn size(oid: &Oid, value: &SnmpValue) -> usize {
    let text = match value {
        SnmpValue::Octets(bytes) | SnmpValue::Opaque(bytes) => bytes.len(),
        SnmpValue::Object(oid) => oid.numbers().len() * 4,
        SnmpValue::Integer(_) | SnmpValue::Address(_) | SnmpValue::Counter(_) | SnmpValue::Gauge(_) | SnmpValue::Ticks(_) => 0,
        SnmpValue::Counter64(_) | SnmpValue::Null | SnmpValue::NoObject | SnmpValue::NoInstance | SnmpValue::End => 0,
    };
    text + oid.numbers().len() * 8 + 96
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fault::Code;

    /// An agent with these objects, in order.
    fn answer(objects: &BTreeMap<Oid, SnmpValue>, asked: &Pdu, most: usize) -> Pdu {
        let mut places: Vec<Oid> = asked.bindings.iter().map(|(oid, _)| oid.clone()).collect();
        let mut bindings = Vec::new();
        for _ in 0..asked.index {
            for place in &mut places {
                let next = objects.range((std::ops::Bound::Excluded(place.clone()), std::ops::Bound::Unbounded)).next();
                bindings.push(next.map_or((place.clone(), SnmpValue::End), |(oid, value)| (oid.clone(), value.clone())));
                *place = bindings.last().map(|(oid, _)| oid.clone()).unwrap_or_default();
            }
        }
        bindings.truncate(most);
        Pdu::new(PduKind::Response, bindings)
    }

    proptest! {
        #[test]
        fn nm_03_a_walk_finds_every_value_below_its_columns(keys in prop::collection::btree_set((1u32..6, 1u32..300), 0..400), most in 1usize..60) {
            let objects: BTreeMap<Oid, SnmpValue> =
                keys.iter().map(|(column, row)| (Oid::new(&[1, 3, *column, *row]), SnmpValue::Gauge(*row))).collect();
            let mut walk = TableWalk::new([2, 4].map(|column| Oid::new(&[1, 3, column])));
            while let Some(request) = walk.request() {
                walk.hear(answer(&objects, &request, most)).unwrap();
            }
            let found: Vec<_> = walk.values().into_iter().flatten().collect();
            let wanted: Vec<_> = objects.into_iter().filter(|(oid, _)| [2, 4].contains(&oid.numbers()[2])).collect();
            prop_assert_eq!(found, wanted);
        }
    }

    #[test]
    fn nm_08_a_device_that_answers_in_circles_is_found_out() {
        let mut walk = TableWalk::new([Oid::new(&[1, 3, 1])]);
        let again = |number| Pdu::new(PduKind::Response, vec![(Oid::new(&[1, 3, 1, number]), SnmpValue::Null)]);
        walk.hear(again(5)).unwrap();
        let fault = walk.hear(again(5)).unwrap_err();
        assert!(fault.code == Code::Unreachable && fault.detail.contains("no further"), "{fault}");
        assert_eq!(walk.hear(Pdu { bindings: Vec::new(), ..again(6) }).unwrap_err().code, Code::Unreachable);
    }

    #[test]
    fn nm_08_a_walk_without_end_is_given_up() {
        let mut walk = TableWalk::new([Oid::new(&[1, 3, 1])]);
        let mut number = 0;
        let fault = loop {
            let bindings = (0..1_000).map(|_| {
                number += 1;
                (Oid::new(&[1, 3, 1, number]), SnmpValue::Octets(vec![0; 100]))
            });
            if let Err(fault) = walk.hear(Pdu::new(PduKind::Response, bindings.collect())) {
                break fault;
            }
        };
        assert!(fault.code == Code::Timeout && walk.bytes < MOST_BYTES + 1_000, "{fault}");
    }

    #[test]
    fn what_is_too_big_is_asked_for_in_parts() {
        let mut walk = TableWalk::new([Oid::new(&[1, 3, 1])]);
        walk.hear(Pdu { status: TOO_BIG, ..Pdu::new(PduKind::Response, Vec::new()) }).unwrap();
        assert_eq!(walk.request().map(|pdu| pdu.index), Some(AT_ONCE / 2));
        let refused = walk.hear(Pdu { status: 6, ..Pdu::new(PduKind::Response, Vec::new()) });
        assert_eq!(refused.unwrap_err().code, Code::AccessDenied);
    }
}
