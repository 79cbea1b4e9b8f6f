//! The Cedar schema of policies: the names policies may use, so that a typing error is an error and not a rule that never holds.
//! The policies themselves name the arguments; see `infer`, not here.

use std::collections::BTreeMap;

use cedar_policy_core::ast::{Eid, EntityType, EntityUID};
use cedar_policy_core::extensions::Extensions;
use cedar_policy_core::parser::err::ParseErrors;
use cedar_policy_core::validator::ValidatorSchema;
use serde_json::{Map, Value, json};

use super::infer::{Node, Type};
use super::target::Action;

pub(super) const ACTION: &str = "Action";
pub(super) const GROUP: &str = "Group";
pub(super) const METHOD: &str = "Method";
pub(super) const MOUNT: &str = "Mount";
pub(super) const PRINCIPAL: &str = "Principal";
pub(super) const PROMPT: &str = "Prompt";
pub(super) const RESOURCE: &str = "Resource";
pub(super) const ROLE: &str = "Role";
pub(super) const TOOL: &str = "Tool";

/// The types, as the library has them.
#[derive(Debug)]
pub(super) struct Types(BTreeMap<&'static str, EntityType>);

impl Types {
    pub(super) fn new() -> Result<Self, String> {
        let all = [ACTION, GROUP, METHOD, MOUNT, PRINCIPAL, PROMPT, RESOURCE, ROLE, TOOL];
        let read = |name: &'static str| Ok((name, name.parse().map_err(|error: ParseErrors| error.to_string())?));
        Ok(Self(all.into_iter().map(read).collect::<Result<_, String>>()?))
    }

    /// Makes the entity of one of our types with this name.
    pub(super) fn uid(&self, of: &str, name: &str) -> Option<EntityUID> {
        Some(EntityUID::from_components(self.0.get(of)?.clone(), Eid::new(name), None))
    }
}

/// Gives the type of an attribute of `principal`, `resource` or `context`, anywhere.
pub(super) fn attribute(name: &str) -> Option<Type> {
    Some(match name {
        "client" | "kind" | "name" | "mount" | "scope" | "cost" | "latency" | "profile" => Type::Text,
        "scopes" => Type::Set(Some(Box::new(Type::Text))),
        "read_only" | "reversible" | "irreversible" | "idempotent" => Type::Bool,
        "unix" | "hour" | "minute" | "weekday" => Type::Long,
        _ => return None,
    })
}

/// Makes the schema of policies that read these arguments.
pub(super) fn schema(arguments: &Node) -> Result<ValidatorSchema, String> {
    let text = json!({"type": "String"});
    let attributes = |names: &[&str]| {
        let all = names.iter().filter_map(|name| Some(((*name).to_owned(), written(&attribute(name)?))));
        json!({"type": "Record", "attributes": all.collect::<Map<_, _>>()})
    };
    let named = ["mount", "name"];
    let tool = ["mount", "name", "read_only", "reversible", "irreversible", "idempotent", "scope", "cost", "latency"];
    let below = |shape: Value| json!({"memberOfTypes": [MOUNT], "shape": shape});
    let action = |action: Action| {
        let context = json!({"type": "Record", "attributes": {
            "arguments": record(arguments),
            "profile": text,
            "time": attributes(&["unix", "hour", "minute", "weekday"]),
        }});
        json!({"appliesTo": {"principalTypes": [PRINCIPAL], "resourceTypes": [action.resource_type()], "context": context}})
    };
    let actions: Map<String, Value> = Action::ALL.into_iter().map(|one| (one.as_str().to_owned(), action(one))).collect();
    let schema = json!({"": {
        "entityTypes": {
            PRINCIPAL: {"memberOfTypes": [GROUP, ROLE], "shape": attributes(&["client", "kind", "name", "scopes"])},
            GROUP: {},
            ROLE: {},
            MOUNT: {"memberOfTypes": [MOUNT]},
            TOOL: below(attributes(&tool)),
            PROMPT: below(attributes(&named)),
            RESOURCE: below(attributes(&named)),
            METHOD: below(attributes(&named)),
        },
        "actions": actions,
    }});
    ValidatorSchema::from_json_value(schema, Extensions::none()).map_err(|error| error.to_string())
}

/// Makes the type of a record of optional arguments, so that a policy has to test for presence first.
fn record(node: &Node) -> Value {
    let attributes = node.children.iter().map(|(name, child)| {
        let mut value = if child.children.is_empty() { written(child.of.as_ref().unwrap_or(&Type::Bool)) } else { record(child) };
        value["required"] = false.into();
        (name.clone(), value)
    });
    json!({"type": "Record", "attributes": attributes.collect::<Map<_, _>>()})
}

fn written(of: &Type) -> Value {
    match of {
        Type::Bool => json!({"type": "Boolean"}),
        Type::Long => json!({"type": "Long"}),
        Type::Text => json!({"type": "String"}),
        Type::Set(of) => json!({"type": "Set", "element": written(of.as_deref().unwrap_or(&Type::Text))}),
    }
}
