//! Values across the two worlds. Has no wire.

use std::time::Duration;

use mesh_proto::annotation::LatencyClass;
use serde_json::json;
use stub_proto::check::Width;
use stub_proto::fixed::FixedForm;

use super::*;

const TABLE: Profile = Profile::Fixed(FixedForm { width: Width::Sixteen, most_payload: 12 });

fn value(name: &str, kind: ValueKind) -> StubValue {
    StubValue { name: name.into(), kind, bytes: 1, unit: None, description: None, minimum: None, maximum: None }
}

fn made(arguments: Vec<StubValue>, answer: ValueKind, results: Vec<StubValue>) -> StubTool {
    StubTool {
        name: "t".into(),
        id: 1,
        description: String::new(),
        arguments,
        answer,
        results,
        is_mutable: true,
        is_reversible: false,
        is_idempotent: false,
        latency: LatencyClass::Fast,
        work: Duration::ZERO,
    }
}

fn arguments(json: Json) -> Map<String, Json> {
    let Json::Object(arguments) = json else { panic!("no object") };
    arguments
}

#[test]
fn ax_71_arguments_go_by_place_and_are_checked() {
    let steps = StubValue { minimum: Some(-100), maximum: Some(100), ..value("steps", ValueKind::Int) };
    let tool = made(vec![steps, value("hold", ValueKind::Bool)], ValueKind::Map, vec![]);
    let read = |json| content(&tool, Profile::Described, &arguments(json));
    assert_eq!(read(json!({"hold": true, "steps": -3})), Ok(Content::Values(vec![Value::Int(-3), Value::Bool(true)])));
    for (json, why) in [
        (json!({"steps": 1}), "`hold` is missing"),
        (json!({"steps": 1, "hold": true, "fast": 1}), "no argument \"fast\""),
        (json!({"steps": "1", "hold": true}), "`steps` is no int"),
        (json!({"steps": 1.5, "hold": true}), "`steps` is no int"),
        (json!({"steps": 101, "hold": true}), "above 100"),
        (json!({"steps": -101, "hold": true}), "below -100"),
        (json!({"steps": 1, "hold": 1}), "`hold` is no bool"),
    ] {
        let refused = read(json).expect_err("refused");
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn ax_43_fractions_have_bounds_too() {
    let power = StubValue { minimum: Some(0), maximum: Some(10), ..value("power", ValueKind::Float) };
    let tool = made(vec![power.clone()], ValueKind::Float, vec![power]);
    for (given, why) in [(json!(1e30), "above 10"), (json!(-0.5), "below 0"), (json!(10.5), "above 10")] {
        let refused = content(&tool, Profile::Described, &arguments(json!({ "power": given }))).expect_err("refused");
        assert!(refused.contains(why), "{refused}");
    }
    assert!(content(&tool, Profile::Described, &arguments(json!({"power": 9.5}))).is_ok());
    assert!(result(&tool, &CallEnd::Values(Value::Float(10.5))).is_err_and(|why| why.contains("above 10")));
}

#[test]
fn ax_43_a_result_beyond_its_schema_goes_no_further() {
    let degrees = StubValue { maximum: Some(125), ..value("degrees", ValueKind::Int) };
    let tool = made(vec![], ValueKind::Map, vec![value("light", ValueKind::Uint), degrees]);
    let read = |members: Vec<(i64, Value)>| result(&tool, &CallEnd::Values(Value::Map(members)));
    let good = read(vec![(0, Value::Int(300)), (1, Value::Int(-4)), (2, Value::Text("<b>".into()))]);
    assert_eq!(good, Ok(arguments(json!({"light": 300, "degrees": -4}))), "an unknown member is dropped");
    for (members, why) in [
        (vec![(0, Value::Int(300))], "lacks `degrees`"),
        (vec![(0, Value::Int(-1)), (1, Value::Int(0))], "no uint as `light`"),
        (vec![(0, Value::Text("300".into())), (1, Value::Int(0))], "no uint as `light`"),
        (vec![(0, Value::Int(1)), (1, Value::Int(126))], "above 125"),
        (vec![(0, Value::Int(1 << 60)), (1, Value::Int(1))], "JSON can't hold"),
    ] {
        let refused = read(members).expect_err("refused");
        assert!(refused.contains(why), "{refused}");
    }
    assert!(result(&tool, &CallEnd::Values(Value::Int(1))).is_err());
    let only = made(vec![], ValueKind::Float, vec![value("volts", ValueKind::Float)]);
    assert_eq!(result(&only, &CallEnd::Values(Value::Float(0.1))).map(Json::Object), Ok(json!({"volts": 0.1})));
    assert!(result(&only, &CallEnd::Values(Value::Float(f32::NAN))).is_err());
    assert_eq!(result(&only, &CallEnd::Values(Value::Int(4))).map(Json::Object), Ok(json!({"volts": 4})));
    assert!(result(&only, &CallEnd::Values(Value::Bool(true))).is_err());
}

#[test]
fn ax_72_a_layout_of_the_configuration_has_the_bytes() {
    let wide = |name, kind, bytes| StubValue { bytes, ..value(name, kind) };
    let tool = made(
        vec![wide("steps", ValueKind::Int, 2), wide("on", ValueKind::Bool, 1), wide("key", ValueKind::Bytes, 2)],
        ValueKind::Map,
        vec![wide("position", ValueKind::Int, 2), wide("count", ValueKind::Uint, 4)],
    );
    let read = |json| content(&tool, TABLE, &arguments(json));
    assert_eq!(read(json!({"steps": -2, "on": true, "key": "AQI="})), Ok(Content::Raw(vec![0xff, 0xfe, 1, 1, 2])));
    assert!(read(json!({"steps": 32768, "on": true, "key": "AQI="})).is_err());
    assert!(read(json!({"steps": 1, "on": true, "key": "AQ=="})).is_err());
    let raw = CallEnd::Raw(vec![0xff, 0xfe, 0, 0, 1, 0]);
    assert_eq!(result(&tool, &raw).map(Json::Object), Ok(json!({"position": -2, "count": 256})));
    assert!(result(&tool, &CallEnd::Raw(vec![1])).is_err());
}
