mod session;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use crate::Error;
pub use session::TlsSession;

/// Whom a client trusts.
#[derive(Clone)]
pub struct ClientTls(Arc<ClientConfig>);

impl ClientTls {
    /// Trusts the certificates of the PEM file `ca` and nobody else; without one, those that the
    /// system trusts (the files of the distribution, or `SSL_CERT_FILE` and `SSL_CERT_DIR`).
    ///
    /// The system's store rather than one built in: who runs the host keeps it up to date.
    pub fn new(ca: Option<&Path>) -> Result<Self, Error> {
        let roots = match ca {
            Some(file) => file_roots(file)?,
            None => system_roots()?,
        };
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| fault("the TLS library", "offers no protocol version", error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(ClientTls(Arc::new(config)))
    }

    pub(crate) fn session(&self, host: &str) -> Result<TlsSession, Error> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| fault(host, "is no name that a certificate can be for", error))?;
        ClientConnection::new(self.0.clone(), name)
            .map(|connection| TlsSession::new(connection.into()))
            .map_err(|error| fault(host, "cannot be connected to", error))
    }
}

/// What a server proves its identity with.
#[derive(Clone)]
pub struct ServerTls(Arc<ServerConfig>);

impl ServerTls {
    /// The PEM file `certificate` holds the server's own certificate and then those between it
    /// and its root; `key` holds its private key (PKCS #8, PKCS #1 or SEC1). Clients aren't asked
    /// for certificates.
    pub fn new(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let chain = certificates(certificate)?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| {
            fault(key.display(), "holds no private key in PEM; give the certificate's key", error)
        })?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| fault("the TLS library", "offers no protocol version", error))?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(|error| {
                let files = format!("{} and {}", certificate.display(), key.display());
                fault(files, "do not belong together; give a certificate and its own key", error)
            })?;
        // Tickets to resume by gain little for connections that last. Unread ones would make a
        // client that only writes and then closes reset the connection, and lose what it wrote.
        config.send_tls13_tickets = 0;
        Ok(ServerTls(Arc::new(config)))
    }

    pub(crate) fn session(&self) -> Result<TlsSession, Error> {
        ServerConnection::new(self.0.clone())
            .map(|connection| TlsSession::new(connection.into()))
            .map_err(|error| fault("the server", "cannot begin a session", error))
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTls")
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls")
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn file_roots(file: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| {
            fault(file.display(), "holds a certificate that cannot be trusted; replace it", error)
        })?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    for error in &found.errors {
        tracing::warn!(%error, "cannot read some of the system's trusted certificates");
    }
    if roots.is_empty() {
        let subject = "the system's store of trusted certificates".to_owned();
        let problem = "is empty; install the package ca-certificates, or name a CA file";
        return Err(Error::Tls { subject, problem, source: None });
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let problem = "holds no certificates in PEM; give a file that begins -----BEGIN CERTIFICATE";
    let chain: Vec<_> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| fault(file.display(), problem, error))?;
    if chain.is_empty() {
        return Err(Error::Tls { subject: file.display().to_string(), problem, source: None });
    }
    Ok(chain)
}

fn fault(
    subject: impl fmt::Display,
    problem: &'static str,
    source: impl std::error::Error + Send + Sync + 'static,
) -> Error {
    Error::Tls { subject: subject.to_string(), problem, source: Some(Box::new(source)) }
}
