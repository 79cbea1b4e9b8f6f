//! Resolves `tls`, `resource`, `[issuer.NAME]` and `[authority.NAME]`. Reads no certificate and no key.

use std::sync::Arc;

use runtime::reach::is_loopback;

use super::file::{self, Clients, MountTls, TrustForm};
use super::resolved::{AuthorityKeys, ClientTls, Issuer, Keys, Tls, Trust};
use crate::file::At;
use crate::problem::Flaw;
use crate::reading::FileReading;

impl FileReading<'_> {
    pub(super) fn trust(&mut self, form: &TrustForm) -> Trust {
        let resource = form.resource.as_ref().and_then(|resource| self.resource(resource));
        let first = form.issuer.keys().chain(form.authority.keys()).next();
        if let (None, Some(first)) = (&form.resource, first) {
            let flaw = Flaw::new(first.span(), "tokens must name this gate, and nothing says how: `resource` is missing");
            self.flaws.push(flaw.help("add resource = \"https://gate.example.com/mcp\" at the top, the address by which clients reach it"));
        }
        Trust {
            tls: form.tls.as_ref().map(|tls| self.tls(tls.get())),
            resource,
            issuers: form.issuer.iter().map(|(name, issuer)| self.issuer(name, issuer)).collect(),
            authorities: form.authority.iter().map(|(name, keys)| self.authority(name, keys)).collect(),
        }
    }

    fn tls(&mut self, tls: &file::Tls) -> Tls {
        let required = tls.clients.as_ref().filter(|clients| *clients.get() == Clients::Required);
        if let (Some(required), None) = (required, &tls.client_ca) {
            let flaw = Flaw::new(required.span(), "client certificates are required, and no authority for them is named");
            self.flaws.push(flaw.help("add `client_ca`, the PEM file of the authority that made them"));
        }
        Tls {
            certificate: self.path(&tls.certificate),
            key: self.path(&tls.key),
            client_ca: tls.client_ca.as_ref().map(|ca| self.path(ca)),
            required: required.is_some(),
        }
    }

    fn resource(&mut self, text: &At<String>) -> Option<Arc<str>> {
        let url = self.address(text)?;
        if url.fragment().is_some() {
            self.flaws.push(
                Flaw::new(text.span(), "the address of a resource has no fragment (RFC 8707)").help("leave out what begins with `#`"),
            );
        }
        // As written: tokens are compared with it to the letter.
        Some(crate::address(text.get(), self.sources).unwrap_or_default().into())
    }

    fn issuer(&mut self, name: &At<String>, issuer: &file::Issuer) -> Issuer {
        if let Some(profile) = &issuer.profile {
            self.known_profile(profile);
        }
        Issuer {
            name: self.party(name),
            issuer: issuer.issuer.get().clone(),
            keys: self.keys(&issuer.keys),
            scopes: issuer.scopes.clone(),
            profile: issuer.profile.as_ref().map(|profile| profile.get().as_str().into()),
        }
    }

    fn authority(&mut self, name: &At<String>, authority: &file::Authority) -> AuthorityKeys {
        if authority.names.is_empty() {
            let flaw = Flaw::new(name.span(), format!("the keys of authority `{}` prove no name", name.get()));
            self.flaws.push(flaw.help("add names = [\"*.example.com\"], or [\"*\"] for every name there is"));
        }
        AuthorityKeys { name: self.party(name), keys: self.keys(&authority.keys), names: self.globs(&authority.names) }
    }

    /// Reads a name for the part behind `@` in names of principals.
    fn party(&mut self, name: &At<String>) -> Arc<str> {
        let text = name.get();
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
            let flaw = Flaw::new(name.span(), format!("`{text}` can't be the name of a section"));
            self.flaws.push(flaw.help("use letters, digits, `-`, `_` and `.`"));
        }
        text.as_str().into()
    }

    fn keys(&mut self, text: &At<String>) -> Keys {
        if !text.get().contains("://") {
            return Keys::File(self.path(text));
        }
        let Some(url) = self.address(text) else { return Keys::File(text.get().into()) };
        if url.scheme() == "http" && !is_loopback(&url) {
            let flaw = Flaw::new(text.span(), "keys that come over plain http:// can be exchanged on the way");
            self.flaws.push(flaw.help("use an https:// address, or a file"));
        }
        Keys::Url(url)
    }

    pub(crate) fn client_tls(&mut self, mount: &str, tls: &At<MountTls>) -> ClientTls {
        let MountTls { certificate, key, ca } = tls.get();
        let own = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((self.path(certificate), self.path(key))),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                let flaw = Flaw::new(tls.span(), format!("`tls` of mount `{mount}` has a certificate or a key, not both"));
                self.flaws.push(flaw.help("give `certificate` and `key`, or neither"));
                None
            }
        };
        ClientTls { own, ca: ca.as_ref().map(|ca| self.path(ca)) }
    }
}
