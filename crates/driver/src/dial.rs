//! Connecting to a URL: TCP, then TLS and SASL as it says.

use crate::{ClientTls, Clock, Error, Io, SocketOptions, Transport, Url, connect};
use hopline_engine::{ClientSasl, Config, Connection};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// In words, with the remedy where there is one.
    pub reason: String,
    /// Another attempt would end likewise: trust in a certificate, say, is not a matter of time.
    pub is_permanent: bool,
}

impl Refusal {
    /// Another attempt would end likewise.
    pub fn permanent(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_permanent: true }
    }

    /// Another attempt may do better.
    pub fn passing(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_permanent: false }
    }
}

/// Connects to `url` within `timeout` (TLS handshake: as much again) and readies an engine with
/// `config`, which speaks as the URL's user: SCRAM-SHA-256 or PLAIN, else ANONYMOUS. With TLS the
/// peer's certificate has to lead to one of `ca` (PEM), by default to one that the system trusts.
///
/// Cancel-safe. Call it within a tokio runtime.
///
/// # Errors
/// The host can't be found or reached, or TLS fails.
pub async fn dial(
    url: &Url,
    ca: Option<&Path>,
    options: &SocketOptions,
    timeout: Duration,
    config: Config,
) -> Result<Io, Refusal> {
    let socket = connect(&url.host, url.port, options, timeout).await;
    let socket = socket.map_err(|error| Refusal::passing(chain(&error)))?;
    let mut transport = transport(url, ca).map_err(|e| Refusal::permanent(chain(&e)))?;
    match tokio::time::timeout(timeout, transport.handshake(&socket)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            let reason = format!("the TLS handshake failed: {error}");
            // What TLS itself refuses, such as a certificate, not a socket that broke.
            return Err(Refusal { reason, is_permanent: error.kind() == ErrorKind::InvalidData });
        }
        Err(_) => {
            return Err(Refusal::passing("the TLS handshake took too long; is it a TLS port?"));
        }
    }
    let engine = Connection::client(config, sasl(url), Clock.now());
    Ok(Io::new(engine, Arc::new(socket), transport))
}

fn sasl(url: &Url) -> ClientSasl {
    match &url.user {
        Some(user) => ClientSasl::Password {
            user: user.clone(),
            password: url.password.clone().unwrap_or_default(),
            nonce: format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()),
        },
        None => ClientSasl::Anonymous,
    }
}

fn transport(url: &Url, ca: Option<&Path>) -> Result<Transport, Error> {
    match url.tls {
        true => Transport::client(&ClientTls::new(ca)?, &url.host),
        false => Ok(Transport::Plain),
    }
}

/// An error and its causes in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
