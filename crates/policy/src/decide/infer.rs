//! Arguments read by the policies, and their types: `context.arguments.path like "/srv/*"` says that `path` is a text. Arguments have
//! no schema of their own here, since every tool has another.

use std::collections::BTreeMap;
use std::ops::Range;

use cedar_policy_core::ast::{BinaryOp, Expr, ExprKind, Literal, UnaryOp, Var};

use super::flaw::Flaw;
use super::schema;

/// The type of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Type {
    Bool,
    Long,
    Text,
    /// Set of elements of this type; `None`: of any type.
    Set(Option<Box<Type>>),
}

/// An argument, or a member of one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Node {
    /// Members read by policies.
    pub(super) children: BTreeMap<String, Node>,
    /// Type of the compared value; `None`: only tested for presence.
    pub(super) of: Option<Type>,
}

/// The arguments read by policies.
#[derive(Default)]
pub(super) struct Inference {
    pub(super) root: Node,
    pub(super) flaws: Vec<Flaw>,
    /// Some rule reads `context`.
    pub(super) reads_context: bool,
}

impl Inference {
    /// Looks at the condition of a policy.
    pub(super) fn condition(&mut self, condition: &Expr) {
        self.walk(condition, Some(&Type::Bool));
    }

    fn walk(&mut self, expr: &Expr, expected: Option<&Type>) {
        if let Some(path) = argument(expr) {
            self.reads_context = true;
            return self.note(&path, expected, span(expr));
        }
        match expr.expr_kind() {
            ExprKind::If { test_expr, then_expr, else_expr } => {
                self.walk(test_expr, Some(&Type::Bool));
                self.walk(then_expr, expected);
                self.walk(else_expr, expected);
            }
            ExprKind::And { left, right } | ExprKind::Or { left, right } => {
                self.walk(left, Some(&Type::Bool));
                self.walk(right, Some(&Type::Bool));
            }
            ExprKind::UnaryApp { op, arg } => {
                let wanted = match op {
                    UnaryOp::Not => Type::Bool,
                    UnaryOp::Neg => Type::Long,
                    UnaryOp::IsEmpty => Type::Set(None),
                };
                self.walk(arg, Some(&wanted));
            }
            ExprKind::BinaryApp { op, arg1, arg2 } => self.binary(*op, arg1, arg2),
            ExprKind::HasAttr { expr: of, attr } => self.presence(of, std::slice::from_ref(attr)),
            ExprKind::ExtHasAttr { expr: of, attrs } => self.presence(of, &attrs.iter().cloned().collect::<Vec<_>>()),
            ExprKind::GetAttr { expr, .. } | ExprKind::Is { expr, .. } => self.walk(expr, None),
            ExprKind::Like { expr, .. } => self.walk(expr, Some(&Type::Text)),
            ExprKind::Set(elements) => elements.iter().for_each(|element| self.walk(element, None)),
            ExprKind::Record(members) => members.values().for_each(|member| self.walk(member, None)),
            ExprKind::ExtensionFunctionApp { args, .. } => args.iter().for_each(|arg| self.walk(arg, None)),
            ExprKind::Var(Var::Context) => self.reads_context = true,
            ExprKind::Var(_) | ExprKind::Lit(_) | ExprKind::Slot(_) | ExprKind::Unknown(_) => {}
        }
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr) {
        let (of_left, of_right) = (type_of(left), type_of(right));
        let set_of = |of: Option<Type>| Some(Type::Set(of.map(Box::new)));
        let element = |of: Option<Type>| if let Some(Type::Set(of)) = of { of.map(|of| *of) } else { None };
        let (for_left, for_right) = match op {
            BinaryOp::Eq => (of_right, of_left),
            BinaryOp::Less | BinaryOp::LessEq | BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => (Some(Type::Long), Some(Type::Long)),
            BinaryOp::Contains => (set_of(of_right), element(of_left)),
            BinaryOp::ContainsAll | BinaryOp::ContainsAny => (of_right.or(set_of(None)), of_left.or(set_of(None))),
            BinaryOp::In => (None, None),
            BinaryOp::GetTag | BinaryOp::HasTag => (None, Some(Type::Text)),
        };
        self.walk(left, for_left.as_ref());
        self.walk(right, for_right.as_ref());
    }

    /// `context.arguments has a.b`.
    fn presence(&mut self, of: &Expr, attributes: &[smol_str::SmolStr]) {
        let Some(mut path) = argument(of) else { return self.walk(of, None) };
        self.reads_context = true;
        path.extend(attributes.iter().map(ToString::to_string));
        self.node(&path);
    }

    fn note(&mut self, path: &[String], of: Option<&Type>, span: Range<usize>) {
        if path.is_empty() {
            let flaw = Flaw::new(span, "arguments are read one by one, not as a whole");
            self.flaws.push(flaw.help("write for example `context.arguments has path && context.arguments.path like \"/srv/*\"`"));
            return;
        }
        let written = || format!("context.arguments.{}", path.join("."));
        let Some(of) = of else {
            let flaw = Flaw::new(span, format!("the type of `{}` can't be told", written()));
            self.flaws.push(flaw.help("compare it with a literal, a number by `<`, or a text by `like`"));
            return;
        };
        let node = self.node(path);
        let differs = match (&node.of, of) {
            (None, _) => false,
            (Some(Type::Set(None)), Type::Set(_)) | (Some(Type::Set(_)), Type::Set(None)) => false,
            (Some(known), of) => known != of,
        };
        if differs || !node.children.is_empty() {
            let flaw = Flaw::new(span, format!("`{}` is used as values of two types", written()));
            self.flaws.push(flaw.help("an argument is a text, a number, a truth value, a set or a record, and the same in all policies"));
        } else if !matches!((&node.of, of), (Some(_), Type::Set(None))) {
            node.of = Some(of.clone());
        }
    }

    fn node(&mut self, path: &[String]) -> &mut Node {
        path.iter().fold(&mut self.root, |node, name| node.children.entry(name.clone()).or_default())
    }
}

/// Gives the path below `context.arguments`; `None` for any other expression.
fn argument(expr: &Expr) -> Option<Vec<String>> {
    let ExprKind::GetAttr { expr, attr } = expr.expr_kind() else { return None };
    if matches!(expr.expr_kind(), ExprKind::Var(Var::Context)) {
        return (attr == "arguments").then(Vec::new);
    }
    let mut path = argument(expr)?;
    path.push(attr.to_string());
    Some(path)
}

fn type_of(expr: &Expr) -> Option<Type> {
    match expr.expr_kind() {
        ExprKind::Lit(Literal::Bool(_)) => Some(Type::Bool),
        ExprKind::Lit(Literal::Long(_)) => Some(Type::Long),
        ExprKind::Lit(Literal::String(_)) => Some(Type::Text),
        ExprKind::Lit(Literal::EntityUID(_)) => None,
        ExprKind::UnaryApp { op: UnaryOp::Neg, .. } => Some(Type::Long),
        ExprKind::BinaryApp { op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, .. } => Some(Type::Long),
        ExprKind::And { .. }
        | ExprKind::Or { .. }
        | ExprKind::Like { .. }
        | ExprKind::HasAttr { .. }
        | ExprKind::ExtHasAttr { .. }
        | ExprKind::Is { .. }
        | ExprKind::UnaryApp { .. }
        | ExprKind::BinaryApp { .. } => Some(Type::Bool),
        ExprKind::Set(elements) => Some(Type::Set(elements.iter().find_map(type_of).map(Box::new))),
        ExprKind::If { then_expr, else_expr, .. } => type_of(then_expr).or_else(|| type_of(else_expr)),
        // What is an argument has no type but the one that it gets here.
        ExprKind::GetAttr { attr, .. } if argument(expr).is_none() => schema::attribute(attr),
        ExprKind::GetAttr { .. }
        | ExprKind::ExtensionFunctionApp { .. }
        | ExprKind::Record(_)
        | ExprKind::Slot(_)
        | ExprKind::Unknown(_)
        | ExprKind::Var(_) => None,
    }
}

fn span(expr: &Expr) -> Range<usize> {
    expr.source_loc().map_or(0..0, |at| at.start()..at.end())
}
