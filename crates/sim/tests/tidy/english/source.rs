//! Rust sources as the measures see them: docs, names of types, functions and tests. Does not judge, and does not expand macros.

#![expect(clippy::wildcard_enum_match_arm, reason = "the enums of syn grow with the language, and most of it has no name")]

use syn::visit::{self, Visit};
use syn::{AttrStyle, Attribute, Expr, ImplItem, Item, Lit, Meta, Signature, Visibility};

/// Derives that make docs into texts for users: help on the command line, descriptions in the schema of the configuration.
const SHOWN_TO_USERS: &[&str] = &["Args", "JsonSchema", "Parser", "Subcommand", "ValueEnum"];

/// Docs and names of one file.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// Docs of every item, those of tests included, without texts for users.
    pub(crate) docs: Vec<String>,
    /// Structs, enums, unions, aliases and traits outside of tests.
    pub(crate) types: Vec<String>,
    /// Free functions and methods outside of tests, less those of trait implementations.
    pub(crate) functions: Vec<String>,
    pub(crate) tests: Vec<String>,
    /// Public functions, types and traits without a doc, outside of tests.
    pub(crate) undocumented: Vec<String>,
    /// Depth of the test code being visited.
    test_depth: usize,
    /// Style of the doc attribute visited last; none after any other part of an item.
    open: Option<bool>,
}

impl Outline {
    /// Reads a file; `is_test` marks a file of tests only.
    pub(crate) fn read(text: &str, is_test: bool) -> Result<Self, syn::Error> {
        let mut outline = Self { test_depth: usize::from(is_test), ..Self::default() };
        outline.visit_file(&syn::parse_file(text)?);
        Ok(outline)
    }

    fn define(&mut self, ident: &syn::Ident, visibility: &Visibility, attributes: &[Attribute]) {
        if self.test_depth == 0 {
            self.types.push(ident.to_string());
        }
        self.require_doc(ident, visibility, attributes);
    }

    fn require_doc(&mut self, ident: &syn::Ident, visibility: &Visibility, attributes: &[Attribute]) {
        if self.test_depth == 0 && matches!(visibility, Visibility::Public(_)) && !attributes.iter().any(|a| doc_text(a).is_some()) {
            self.undocumented.push(ident.to_string());
        }
    }

    fn function(&mut self, signature: &Signature, attributes: &[Attribute]) {
        if is_test_function(attributes) {
            self.tests.push(signature.ident.to_string());
        } else if self.test_depth == 0 {
            self.functions.push(signature.ident.to_string());
        }
    }
}

impl<'a> Visit<'a> for Outline {
    fn visit_attribute(&mut self, attribute: &'a Attribute) {
        let Some(text) = doc_text(attribute) else { return };
        let inner = matches!(attribute.style, AttrStyle::Inner(_));
        match self.docs.last_mut() {
            Some(doc) if self.open == Some(inner) => *doc = format!("{doc} {}", text.trim()),
            _ => self.docs.push(text.trim().to_owned()),
        }
        self.open = Some(inner);
    }

    fn visit_ident(&mut self, _: &'a syn::Ident) {
        self.open = None;
    }

    fn visit_item(&mut self, item: &'a Item) {
        let attributes = attributes(item);
        if derives_user_text(attributes) {
            // Its names count, its docs are not ours to judge.
            if let Item::Struct(syn::ItemStruct { ident, .. }) | Item::Enum(syn::ItemEnum { ident, .. }) = item
                && self.test_depth == 0
            {
                self.types.push(ident.to_string());
            }
            return;
        }
        let is_test = is_test_only(attributes);
        self.test_depth += usize::from(is_test);
        match item {
            Item::Struct(i) => self.define(&i.ident, &i.vis, &i.attrs),
            Item::Enum(i) => self.define(&i.ident, &i.vis, &i.attrs),
            Item::Union(i) => self.define(&i.ident, &i.vis, &i.attrs),
            Item::Type(i) => self.define(&i.ident, &i.vis, &i.attrs),
            Item::Trait(i) => self.define(&i.ident, &i.vis, &i.attrs),
            Item::Fn(i) => {
                self.function(&i.sig, &i.attrs);
                self.require_doc(&i.sig.ident, &i.vis, &i.attrs);
            }
            Item::Impl(i) if i.trait_.is_none() => {
                for method in &i.items {
                    if let ImplItem::Fn(method) = method {
                        self.function(&method.sig, &method.attrs);
                        self.require_doc(&method.sig.ident, &method.vis, &method.attrs);
                    }
                }
            }
            _ => {}
        }
        visit::visit_item(self, item);
        self.test_depth -= usize::from(is_test);
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        self.function(&function.sig, &function.attrs);
        visit::visit_trait_item_fn(self, function);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        _ => &[],
    }
}

fn doc_text(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    match &pair.value {
        Expr::Lit(syn::ExprLit { lit: Lit::Str(text), .. }) if pair.path.is_ident("doc") => Some(text.value()),
        _ => None,
    }
}

fn tokens(attribute: &Attribute) -> String {
    attribute.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default()
}

fn derives_user_text(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|a| a.path().is_ident("derive")).any(|derive| {
        let tokens = tokens(derive);
        tokens.split(|c: char| !c.is_alphanumeric()).any(|word| SHOWN_TO_USERS.contains(&word))
    })
}

fn is_test_function(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| a.path().segments.last().is_some_and(|last| last.ident == "test"))
}

/// Recognises `#[cfg(test)]`, and `cfg(any(test, ..))`.
fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|a| a.path().is_ident("cfg")).any(|cfg| {
        let tokens = tokens(cfg);
        tokens.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "test")
    })
}
